package linkbench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link"
)

// Bandwidth is what a link carries in steady state while more is offered, in bit/s of
// layer-3 bytes.
type Bandwidth struct {
	Set      int64   `json:"set_bps"`
	Measured float64 `json:"measured_bps"`
	Error    float64 `json:"error_percent"`
	Packets  int     `json:"packets"`
	// Overflow is packets that the receiver's socket had no room for; they are
	// counted, as they had passed the link.
	Overflow int     `json:"overflow"`
	Seconds  float64 `json:"seconds"`
}

const (
	payload  = 1472 // UDP, for packets of 1500 bytes
	wireSize = payload + 28
	// overload is how much more than the link carries is offered.
	overload = 1.15
	// batch is how many packets are handed to the kernel as one: 60 KiB.
	batch = 40
)

func (b *bench) measureBandwidth(ctx context.Context) error {
	for _, bps := range []int64{1e6, 10e6, 100e6, 1e9} {
		b.Progress(fmt.Sprintf("bandwidth at %d Mbit/s", bps/1e6))
		r, err := b.measureBandwidthAt(ctx, bps)
		if err != nil {
			return err
		}
		b.result.Bandwidth = append(b.result.Bandwidth, r)
	}
	return nil
}

func (b *bench) measureBandwidthAt(ctx context.Context, bps int64) (r Bandwidth, err error) {
	w, err := b.newPairTestbed(ctx, link.Quality{Latency: 5 * time.Millisecond, Bandwidth: bps})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	from, to := w.links[0].a, w.links[0].b
	receiver, err := openUDP(to, unix.SO_TIMESTAMPNS, unix.SO_RXQ_OVFL)
	if err != nil {
		return r, err
	}
	defer unix.Close(receiver)
	sender, err := openUDP(from)
	if err != nil {
		return r, err
	}
	defer unix.Close(sender)
	if err := connectUDP(sender, receiver); err != nil {
		return r, err
	}
	during := pick(b, 10*time.Second, 4*time.Second)
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var flooding sync.WaitGroup
	defer flooding.Wait()
	flooding.Go(func() { sendAtRate(ctx, sender, float64(bps)*overload) })
	r, err = countPackets(receiver, during/5, during)
	r.Set = bps
	r.Error = (r.Measured/float64(bps) - 1) * 100
	return r, err
}

func openUDP(at *endpoint, options ...int) (fd int, err error) {
	err = at.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	for _, o := range options {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, o, 1))
	}
	const room = 64 << 20
	err = errors.Join(err,
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(at.addr).As4()}))
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("open a UDP socket: %w", err)
	}
	return fd, nil
}

func connectUDP(sender, receiver int) error {
	to, err := unix.Getsockname(receiver)
	if err != nil {
		return err
	}
	return unix.Connect(sender, to)
}

// sendAtRate sends packets at a rate in bit/s until ctx ends. Up to 40 of them are one call
// (UDP_SEGMENT), so that sending leaves the cores to the link.
func sendAtRate(ctx context.Context, fd int, bps float64) {
	buffer := make([]byte, payload*batch)
	// Where the kernel cannot cut, the packets go out one by one.
	most := batch
	if unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, payload) != nil {
		most = 1
	}
	began, sent := time.Now(), 0
	for ctx.Err() == nil {
		due := int(time.Since(began).Seconds() * bps / 8 / wireSize)
		if due <= sent {
			time.Sleep(time.Millisecond)
			continue
		}
		n := min(due-sent, most)
		_ = unix.Send(fd, buffer[:n*payload], 0) // what a full queue refuses is part of the flood
		sent += n
	}
}

// countPackets counts packets by the kernel's time of arrival, from a while after the first.
func countPackets(fd int, after, during time.Duration) (r Bandwidth, err error) {
	var buffer [payload]byte
	var control [128]byte
	var first, begin, last int64
	var overflow uint32
	for {
		n, controls, _, _, err := unix.Recvmsg(fd, buffer[:], control[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) { // for a second: the flood is over
			break
		}
		if err != nil {
			return r, fmt.Errorf("receive: %w", err)
		}
		at, lost := parseArrival(control[:controls])
		if n != payload || at == 0 {
			continue
		}
		switch {
		case first == 0:
			first = at
		case at-first > int64(during-after/2):
			return r, nil
		case at-first < int64(after):
			overflow = lost
		case begin == 0:
			begin, last = at, at
		default:
			r.Packets++
			last = at
			r.Overflow = int(lost - overflow)
		}
		if last > begin {
			r.Seconds = float64(last-begin) / 1e9
			r.Measured = float64(r.Packets+r.Overflow) * wireSize * 8 / r.Seconds
		}
	}
	if r.Packets == 0 {
		return r, errors.New("no packets arrived")
	}
	return r, nil
}

func parseArrival(control []byte) (at int64, overflow uint32) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, 0
	}
	for _, m := range messages {
		switch {
		case m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16:
			at = int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		case m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4:
			overflow = binary.NativeEndian.Uint32(m.Data)
		}
	}
	return at, overflow
}
