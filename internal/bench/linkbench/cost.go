package linkbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/evidence/stats"
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

// measureGrow measures with one thread and with two.
func (b *bench) measureGrow(ctx context.Context) error {
	defer func() { b.threads = 0 }()
	for b.threads = 1; b.threads <= min(2, runtime.NumCPU()); b.threads++ {
		b.Progress(fmt.Sprintf("%d disjoint links, %d threads", growLinks, b.threads))
		if err := b.measureGrowAt(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureGrowAt(ctx context.Context) (err error) {
	var edges [][2]int
	for i := range growLinks {
		edges = append(edges, [2]int{2 * i, 2*i + 1})
	}
	none := make([]link.Quality, growLinks)
	w, err := b.newTestbed(ctx, 2*growLinks, edges, none, none)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	g := Grow{Threads: b.threads, Links: growLinks}
	for range pick(b, 3, 1) { // the best of some rounds: others had the processors in the rest
		bps, err := w.measureStreams(ctx, pick(b, 2*time.Second, 300*time.Millisecond))
		if err != nil {
			return err
		}
		g.BPS = max(g.BPS, bps)
		packets, cost, err := w.measureFlood(ctx, pick(b, 3*time.Second, 300*time.Millisecond))
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

// measureStreams is the payload of a stream on each wire at once, in bit/s.
func (w *testbed) measureStreams(ctx context.Context, during time.Duration) (sum float64, err error) {
	all := make([]float64, len(w.links))
	group, ctx := errgroup.WithContext(ctx)
	for i, x := range w.links {
		group.Go(func() (err error) {
			all[i], err = measureGoodput(ctx, x.a, x.b, during/4, during)
			return err
		})
	}
	err = group.Wait()
	for _, bps := range all {
		sum += bps
	}
	return sum, err
}

// measureFlood sends small packets along all wires at once, and returns how many a second the far
// ends were handed and the microseconds of processor that each packet read cost the emulator.
func (w *testbed) measureFlood(ctx context.Context, during time.Duration) (packets, cost float64, err error) {
	before, err := w.readAccount(ctx)
	if err != nil {
		return 0, 0, err
	}
	flood, stop := context.WithTimeout(ctx, during)
	defer stop()
	group := new(errgroup.Group)
	for _, x := range w.links {
		group.Go(func() error { return sendSmallPackets(flood, x.a, x.b) })
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return 0, 0, fmt.Errorf("flood the links: %w", err)
	}
	after, err := w.readAccount(ctx)
	read := float64(after.read - before.read)
	packets = float64(after.passed-before.passed) / after.at.Sub(before.at).Seconds()
	return packets, (after.busy - before.busy).Seconds() * 1e6 / max(read, 1), err
}

// account is the emulator's own.
type account struct {
	at           time.Time
	busy         time.Duration
	passed, read uint64 // packets
}

func (w *testbed) readAccount(ctx context.Context) (account, error) {
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

// sendSmallPackets sends packets of 100 bytes until ctx ends, to a socket without a reader.
func sendSmallPackets(ctx context.Context, from, to *endpoint) (err error) {
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
	if err := connectUDP(source, sink); err != nil {
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

// Cost is what an emulator takes for its work: this program's, or that of Options.Against, which
// takes turns with it under the same load.
type Cost struct {
	// Emulator is this or against.
	Emulator string `json:"emulator"`
	// Idle is the processor time in percent of one that all links of azure8 take without traffic.
	Idle float64 `json:"idle_percent"`
	// Microseconds of processor that a packet of a flood took, Packets how many a second came through.
	Microseconds float64 `json:"microseconds_per_packet"`
	Packets      float64 `json:"packets_per_second"`
	// BPS is the payload of one TCP stream, in bit/s.
	BPS float64 `json:"bps"`
}

// The emulators that Cost knows.
const (
	costThis    = "this"
	costAgainst = "against"
)

func (b *bench) measureCost(ctx context.Context) error {
	own := b.Command
	defer func() { b.Command = own }()
	emulators := []string{costThis}
	if len(b.Against) > 0 {
		emulators = []string{costAgainst, costThis}
	}
	for range pick(b, 5, 2) {
		for _, name := range emulators {
			b.Progress("cost of the emulator: " + name)
			b.Command = own
			if name == costAgainst {
				b.Command = b.Against
			}
			c := Cost{Emulator: name}
			if err := errors.Join(b.measureIdle(ctx, &c), b.measureLoaded(ctx, &c)); err != nil {
				return err
			}
			b.result.Cost = append(b.result.Cost, c)
		}
	}
	return nil
}

func (b *bench) measureIdle(ctx context.Context, c *Cost) (err error) {
	w, err := b.newAzureTestbed(ctx, 1, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	// Devices that came up make their neighbours known before anything is idle.
	if err := linger.For(ctx, pick(b, 3*time.Second, time.Second)); err != nil {
		return err
	}
	before, err := w.readAccount(ctx)
	if err != nil {
		return err
	}
	if err := linger.For(ctx, pick(b, 6*time.Second, time.Second)); err != nil {
		return err
	}
	after, err := w.readAccount(ctx)
	c.Idle = 100 * (after.busy - before.busy).Seconds() / after.at.Sub(before.at).Seconds()
	return err
}

func (b *bench) measureLoaded(ctx context.Context, c *Cost) (err error) {
	w, err := b.newPairTestbed(ctx, link.Quality{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if c.BPS, err = w.measureStreams(ctx, pick(b, 2*time.Second, 300*time.Millisecond)); err != nil {
		return err
	}
	c.Packets, c.Microseconds, err = w.measureFlood(ctx, pick(b, 3*time.Second, 300*time.Millisecond))
	return err
}

// medianCost are the medians of an emulator's turns.
func medianCost(all []Cost, emulator string) (m Cost, ok bool) {
	var idle, us, packets, bps []float64
	for _, c := range all {
		if c.Emulator == emulator {
			idle, us = append(idle, c.Idle), append(us, c.Microseconds)
			packets, bps = append(packets, c.Packets), append(bps, c.BPS)
		}
	}
	if len(idle) == 0 {
		return m, false
	}
	return Cost{emulator, stats.Median(idle), stats.Median(us), stats.Median(packets), stats.Median(bps)}, true
}
