package linkbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/bench/tcpstream"
	"skerry/internal/kernel/procfs"
	"skerry/internal/link"
)

// Grow is what the emulator carries over links that have nothing in common, by its threads.
type Grow struct {
	Threads int `json:"threads"`
	Links   int `json:"links"`
	// BPS is the payload of a TCP stream on each link at once, in bit/s of all.
	BPS float64 `json:"bps"`
	// Packets is how many packets of 100 bytes a second came through, of a flood on each link,
	// and Microseconds the processor time that the emulator took for one that it read.
	Packets      float64 `json:"packets_per_second"`
	Microseconds float64 `json:"microseconds_per_packet"`
}

const growLinks = 2

// grow measures with one thread and with two.
func (b *bench) grow(ctx context.Context) error {
	defer func() { b.threads = 0 }()
	for b.threads = 1; b.threads <= min(2, runtime.NumCPU()); b.threads++ {
		b.Progress(fmt.Sprintf("%d disjoint links, %d threads", growLinks, b.threads))
		if err := b.growAt(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) growAt(ctx context.Context) (err error) {
	var edges [][2]int
	for i := range growLinks {
		edges = append(edges, [2]int{2 * i, 2*i + 1})
	}
	none := make([]link.Quality, growLinks)
	w, err := b.newWorld(ctx, 2*growLinks, edges, none, none)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	g := Grow{Threads: b.threads, Links: growLinks}
	for range pick(b, 3, 1) { // the best of some rounds: others had the processors in the rest
		bps, err := w.streams(ctx, pick(b, 2*time.Second, 300*time.Millisecond))
		if err != nil {
			return err
		}
		g.BPS = max(g.BPS, bps)
		packets, cost, err := w.flood(ctx, pick(b, 3*time.Second, 300*time.Millisecond))
		if err != nil {
			return err
		}
		if packets > g.Packets {
			g.Packets, g.Microseconds = packets, cost
		}
	}
	b.result.Grow = append(b.result.Grow, g)
	return nil
}

// streams is the payload of a stream on each wire at once, in bit/s.
func (w *world) streams(ctx context.Context, during time.Duration) (sum float64, err error) {
	all := make([]float64, len(w.wires))
	group, ctx := errgroup.WithContext(ctx)
	for i, x := range w.wires {
		group.Go(func() (err error) {
			all[i], err = tcpstream.Goodput(ctx, x.a, x.b, during/4, during)
			return err
		})
	}
	err = group.Wait()
	for _, bps := range all {
		sum += bps
	}
	return sum, err
}

// flood sends small packets along all wires at once, and returns how many a second the far
// ends were handed and the microseconds of processor that each packet read cost the emulator.
func (w *world) flood(ctx context.Context, during time.Duration) (packets, cost float64, err error) {
	before, err := w.account(ctx)
	if err != nil {
		return 0, 0, err
	}
	flood, stop := context.WithTimeout(ctx, during)
	defer stop()
	group := new(errgroup.Group)
	for _, x := range w.wires {
		group.Go(func() error { return pour(flood, x.a, x.b) })
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return 0, 0, fmt.Errorf("flood the links: %w", err)
	}
	after, err := w.account(ctx)
	read := float64(after.read - before.read)
	return float64(after.passed-before.passed) / after.at.Sub(before.at).Seconds(), (after.busy - before.busy).Seconds() * 1e6 / max(read, 1), err
}

// account is the emulator's own.
type account struct {
	at           time.Time
	busy         time.Duration
	passed, read uint64 // packets
}

func (w *world) account(ctx context.Context) (account, error) {
	stats, err := w.engine.Stats(ctx)
	if err != nil {
		return account{}, err
	}
	s, err := procfs.ReadStat(w.engine.PID())
	if err != nil {
		return account{}, fmt.Errorf("processor time of the emulator: %w", err)
	}
	a := account{at: time.Now(), busy: s.CPU}
	for _, x := range stats {
		a.passed += x.AB.Packets
		a.read += x.AB.Packets + x.AB.DroppedQueue + x.AB.DroppedLoss
	}
	return a, nil
}

// pour sends packets of 100 bytes until ctx ends, to a socket without a reader.
func pour(ctx context.Context, from, to *stand) (err error) {
	sink, err := openUDP(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(sink)) }()
	source, err := openUDP(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(source)) }()
	if err := connect(source, sink); err != nil {
		return err
	}
	var payload [72]byte // with 28 bytes of headers
	for ctx.Err() == nil {
		for range 64 {
			// ENOBUFS is a full queue: a flood is meant to have one.
			if _, err := unix.Write(source, payload[:]); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return err
			}
		}
	}
	return nil
}
