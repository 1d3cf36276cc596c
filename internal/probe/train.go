package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Train is a sequence of UDP packets to send in one direction.
type Train struct {
	Packets int
	// Bytes is the size of each at layer 3, at least LeastBytes.
	Bytes int
	// Every is the time from one packet to the next; 0 sends them back to back.
	Every time.Duration
	// Burst is how many are sent together, the bursts Burst*Every apart; 0 means 1.
	Burst int
	// Patience is how long after the last sending the first arrival is waited for,
	// Quiet how long after the latest one more are. 0 means 2 s and 0.2 s.
	Patience, Quiet time.Duration
	// Linger waits for Quiet even when every packet has arrived, for duplicates.
	Linger bool
}

// Arrival is one packet of a Train as it arrived.
type Arrival struct {
	Seq int // from 0, in the order of sending
	// Sent is when the sender handed the packet to its kernel, At when it reached
	// the receiver's, both in ns of CLOCK_REALTIME: one clock for both ends, so
	// their difference is the one-way delay.
	Sent, At int64
	// Place counts the packets of the train that arrived before it, those included
	// that found the receiver's socket full.
	Place int
}

// Delay is the one-way delay of the packet.
func (a Arrival) Delay() time.Duration { return time.Duration(a.At - a.Sent) }

const (
	// packetHeader is what IPv4 and UDP add to a packet's payload.
	packetHeader = 28
	// mark is what a packet carries: nonce, sequence number, time of sending.
	mark = 8 + 8 + 8
	// LeastBytes is the smallest packet of a Train.
	LeastBytes = packetHeader + mark
	// bookkeeping is what the kernel charges a socket's buffer for one packet,
	// rounded up.
	bookkeeping = 4096
	// mostBuffer bounds the buffer of a long, slow train.
	mostBuffer = 64 << 20
)

// Send sends a train from one place to the other and returns what arrived, in the
// order of arrival. Packets that do not arrive are no error.
func Send(ctx context.Context, from, to Inside, train Train) ([]Arrival, error) {
	if train.Bytes < LeastBytes {
		return nil, fmt.Errorf("a packet of %d bytes: want at least %d", train.Bytes, LeastBytes)
	}
	train.Burst = max(train.Burst, 1)
	if train.Patience == 0 {
		train.Patience = patience
	}
	if train.Quiet == 0 {
		train.Quiet = leastPatience
	}
	buffer := min(train.Packets*bookkeeping, mostBuffer)
	receiver, err := listen(to, buffer)
	if err != nil {
		return nil, err
	}
	defer receiver.Close()
	sender, err := dial(from, receiver.LocalAddr().(*net.UDPAddr), buffer)
	if err != nil {
		return nil, err
	}
	defer sender.Close()
	r := run{train: train, nonce: rand.Uint64(), sender: sender, receiver: receiver, sent: make(chan error, 1)}
	return r.run(ctx)
}

// run is one train under way.
type run struct {
	train            Train
	nonce            uint64
	sender, receiver *net.UDPConn
	sent             chan error // one value, when the sender is done
}

func (r *run) run(ctx context.Context) ([]Arrival, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		past := time.Unix(1, 0)
		r.receiver.SetReadDeadline(past)
		r.sender.SetWriteDeadline(past)
	})
	defer stop()
	pushed := make(chan struct{})
	go func() {
		defer close(pushed)
		r.sent <- r.push(ctx)
	}()
	arrivals, err := r.pull(ctx)
	cancel()
	<-pushed
	return arrivals, err
}

func (r *run) push(ctx context.Context) error {
	p := make([]byte, r.train.Bytes-packetHeader)
	binary.BigEndian.PutUint64(p, r.nonce)
	start := time.Now()
	var failed error
	for seq := range r.train.Packets {
		if r.train.Every > 0 && seq%r.train.Burst == 0 {
			due := start.Add(time.Duration(seq) * r.train.Every)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(due)):
			}
		}
		binary.BigEndian.PutUint64(p[8:], uint64(seq))
		binary.BigEndian.PutUint64(p[16:], uint64(time.Now().UnixNano()))
		_, err := r.sender.Write(p)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return failed
		case err != nil && !errors.Is(err, syscall.ENOBUFS):
			failed = fmt.Errorf("sending to %s: %w", r.sender.RemoteAddr(), err)
		}
	}
	return failed
}

func (r *run) pull(ctx context.Context) ([]Arrival, error) {
	var buf [64]byte // longer packets are cut
	var oob [controlSize]byte
	arrivals := make([]Arrival, 0, r.train.Packets)
	seen := make([]bool, r.train.Packets)
	distinct, sending := 0, true
	for {
		limit := r.train.Quiet
		if len(arrivals) == 0 {
			limit = r.train.Patience
		}
		if err := r.receiver.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return arrivals, err
		}
		if err := ctx.Err(); err != nil { // after the deadline, lest it undo AfterFunc's
			return arrivals, err
		}
		n, oobn, _, _, err := r.receiver.ReadMsgUDPAddrPort(buf[:], oob[:])
		switch {
		case ctx.Err() != nil:
			return arrivals, ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !sending {
				return arrivals, nil
			}
			select {
			case failed := <-r.sent:
				if failed != nil && len(arrivals) == 0 {
					return nil, failed
				}
				sending = false // and wait once more, counted from here
			default:
			}
			continue
		case err != nil:
			return arrivals, fmt.Errorf("receiving a packet train: %w", err)
		case n < mark || binary.BigEndian.Uint64(buf[:]) != r.nonce:
			continue
		}
		about := parseControl(oob[:oobn])
		if about.stamp == 0 { // the kernel is still switching stamps on
			about.stamp = time.Now().UnixNano()
		}
		a := Arrival{
			Seq:   int(binary.BigEndian.Uint64(buf[8:])),
			Sent:  int64(binary.BigEndian.Uint64(buf[16:])),
			At:    about.stamp,
			Place: len(arrivals) + int(about.drops),
		}
		if a.Seq < 0 || a.Seq >= len(seen) {
			continue
		}
		if !seen[a.Seq] {
			seen[a.Seq] = true
			distinct++
		}
		arrivals = append(arrivals, a)
		if distinct+int(about.drops) >= len(seen) && !r.train.Linger {
			return arrivals, nil
		}
	}
}

func listen(at Inside, buffer int) (conn *net.UDPConn, err error) {
	addr, err := netip.ParseAddr(at.Addr())
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", at.Addr(), err)
	}
	err = at.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", at.Addr(), err)
	}
	return prepare(conn, buffer)
}

func dial(from Inside, to *net.UDPAddr, buffer int) (conn *net.UDPConn, err error) {
	err = from.Do(func() (err error) {
		conn, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from.Addr())}, to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sending from %s: %w", from.Addr(), err)
	}
	return prepare(conn, buffer)
}

// prepare sets a socket up for a train and closes it when it cannot.
func prepare(conn *net.UDPConn, buffer int) (*net.UDPConn, error) {
	raw, err := conn.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) {
			failed = errors.Join(
				growBuffers(int(fd), buffer),
				stampPackets(int(fd), 0),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1))
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("preparing a socket for a packet train: %w", err)
	}
	return conn, nil
}
