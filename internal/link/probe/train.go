package probe

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"skerry/internal/base/linger"
)

// Train is a sequence of UDP packets to send in one direction.
type Train struct {
	Packets int
	// Bytes is the layer-3 size of each packet, at least MinPacketBytes.
	Bytes int
	// Every is the minimum time between packets; 0 sends them back to back. A delayed sender does not
	// catch up.
	Every time.Duration
	// Burst is the number of packets sent together, Burst*Every apart; 0 means 1.
	Burst int
	// Patience bounds the wait for the first arrival after the sending, Quiet the wait for another one. 0 means
	// 2 s and 0.2 s.
	Patience, Quiet time.Duration
	// Linger waits for Quiet even after every packet has arrived, to receive duplicates.
	Linger bool
	// Enough, if set, is called after the sending, when no packet has arrived for a moment. It reports whether
	// no more packets will arrive.
	Complete func(arrived int) bool `json:"-"`
}

func (t Train) withDefaults() (Train, error) {
	if t.Bytes < MinPacketBytes {
		return t, fmt.Errorf("packet of %d bytes: want at least %d", t.Bytes, MinPacketBytes)
	}
	t.Burst = max(t.Burst, 1)
	t.Patience = cmp.Or(t.Patience, replyTimeout)
	t.Quiet = cmp.Or(t.Quiet, defaultQuiet)
	return t, nil
}

func (t Train) bufferSize() int { return min(t.Packets*bufferPerPacket, maxBuffer) }

// Arrival is a packet that arrived.
type Arrival struct {
	Seq int // from 0, in the order of sending
	// Sent is when the sender passed the packet to its kernel, At when it reached the receiver's kernel, both in ns
	// of CLOCK_REALTIME. On one machine the difference is the one-way delay.
	Sent, At int64
	// Place is the number of earlier arrivals of the train, including drops at the receiver's full socket.
	Place int
}

// Delay returns the one-way delay.
func (a Arrival) Delay() time.Duration { return time.Duration(a.At - a.Sent) }

const (
	// packetHeader is the size of the IPv4 and UDP headers.
	packetHeader = 28
	// payloadBytes is the minimum payload: nonce, sequence number, time of sending.
	payloadBytes = 8 + 8 + 8
	// MinPacketBytes is the smallest packet of a Train.
	MinPacketBytes = packetHeader + payloadBytes
	// defaultQuiet is Train.Quiet's default.
	defaultQuiet = 200 * time.Millisecond
	// bufferPerPacket is the kernel's charge to a socket buffer per packet, rounded up.
	bufferPerPacket = 4096
	// maxBuffer bounds the buffer of a long, slow train.
	maxBuffer = 64 << 20
)

// SendTrain sends a train between two places of this machine and returns its arrivals in order. A lost packet is no error.
func SendTrain(ctx context.Context, from, to Inside, train Train) ([]Arrival, error) {
	train, err := train.withDefaults()
	if err != nil {
		return nil, err
	}
	receiver, err := listen(to, 0, train.bufferSize())
	if err != nil {
		return nil, err
	}
	defer receiver.Close()
	sender, err := dial(from, receiver.LocalAddr().(*net.UDPAddr), train.bufferSize())
	if err != nil {
		return nil, err
	}
	defer sender.Close()
	r := run{train: train, nonce: rand.Uint64(), sender: sender, receiver: receiver, sent: make(chan error, 1)}
	return r.run(ctx)
}

// run is the state of one train.
type run struct {
	train            Train
	nonce            uint64
	sender, receiver *net.UDPConn
	sent             chan error // receives one value after the sending
}

func (r *run) run(ctx context.Context) ([]Arrival, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		past := time.Unix(1, 0)
		_ = r.receiver.SetReadDeadline(past) // the socket is open until the end of run
		_ = r.sender.SetWriteDeadline(past)
	})
	defer stop()
	pushed := make(chan struct{})
	go func() {
		defer close(pushed)
		r.sent <- r.sendPackets(ctx)
	}()
	arrivals, err := r.receivePackets(ctx)
	cancel()
	<-pushed
	return arrivals, err
}

func (r *run) sendPackets(ctx context.Context) error {
	p := make([]byte, r.train.Bytes-packetHeader)
	binary.BigEndian.PutUint64(p, r.nonce)
	interval := time.Duration(r.train.Burst) * r.train.Every
	due := time.Now()
	var failed error
	for seq := range r.train.Packets {
		if interval > 0 && seq > 0 && seq%r.train.Burst == 0 {
			due = due.Add(interval)
			if err := linger.For(ctx, time.Until(due)); err != nil {
				return err
			}
			if late := time.Since(due); late > interval {
				due = due.Add(late)
			}
		}
		binary.BigEndian.PutUint64(p[8:], uint64(seq))
		binary.BigEndian.PutUint64(p[16:], uint64(time.Now().UnixNano()))
		_, err := r.sender.Write(p)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return failed
		case err != nil && !errors.Is(err, syscall.ENOBUFS):
			failed = fmt.Errorf("send to %s: %w", r.sender.RemoteAddr(), err)
		}
	}
	return failed
}

// maxReadWait bounds one read. After a stop of the machine only one such wait has expired, not the whole patience, while
// packets wait in the socket.
const maxReadWait = 50 * time.Millisecond

func (r *run) receivePackets(ctx context.Context) ([]Arrival, error) {
	c := collector{nonce: r.nonce, seen: make([]bool, r.train.Packets)}
	sending, waited := true, time.Duration(0)
	for !c.complete() || r.train.Linger {
		limit := r.train.Quiet
		if len(c.arrivals) == 0 {
			limit = r.train.Patience
		}
		wait := min(maxReadWait, limit/4)
		if err := r.receiver.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil { // after the deadline, so as not to undo AfterFunc's
			return nil, err
		}
		err := c.read(r.receiver)
		switch {
		case err == nil:
			waited = 0
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("receive packet train: %w", err)
		case sending:
			select {
			case failed := <-r.sent:
				if failed != nil && len(c.arrivals) == 0 {
					return nil, failed
				}
				sending = false
			default:
			}
		default:
			waited += wait
			if waited >= limit || r.train.Complete != nil && r.train.Complete(len(c.arrivals)) {
				return c.arrivals, nil
			}
		}
	}
	return c.arrivals, nil
}

// collector collects the packets of a train.
type collector struct {
	nonce    uint64
	arrivals []Arrival
	seen     []bool // by sequence number
	distinct int
	drops    int // packets dropped by the full socket
	buf      [64]byte
	oob      [controlSize]byte
}

// complete reports whether no packet is missing.
func (c *collector) complete() bool { return c.distinct+c.drops >= len(c.seen) }

// read reads one packet and ignores packets of other trains.
func (c *collector) read(conn *net.UDPConn) error {
	n, oobn, _, from, err := conn.ReadMsgUDPAddrPort(c.buf[:], c.oob[:])
	if err != nil {
		return err
	}
	seq := binary.BigEndian.Uint64(c.buf[8:])
	switch {
	case n < payloadBytes || binary.BigEndian.Uint64(c.buf[:]) != c.nonce:
		return nil
	case seq == callSequence:
		_, _ = conn.WriteToUDPAddrPort(c.buf[:payloadBytes], from) // the sender repeats a lost call
		return nil
	case seq >= uint64(len(c.seen)):
		return nil
	}
	about := parseControl(c.oob[:oobn])
	c.drops = int(about.drops)
	if !c.seen[seq] {
		c.seen[seq] = true
		c.distinct++
	}
	c.arrivals = append(c.arrivals, Arrival{
		Seq:   int(seq),
		Sent:  int64(binary.BigEndian.Uint64(c.buf[16:])),
		At:    about.stamp,
		Place: len(c.arrivals) + c.drops,
	})
	return nil
}

// Meeting identifies a train between two machines. Each end runs in a separate call:
//
//	sender ── call, call, ... ──► receiver     until it listens
//	       ◄───────────── echo ──
//	       ── the train ────────►              the pace is measured here, by one clock
//
// The clocks need not agree: only differences between the packets' delays are used.
type Meeting struct {
	Port  uint16 `json:"port"`  // UDP port of the receiver
	Nonce uint64 `json:"nonce"` // in the train's packets
}

const (
	// callSequence replaces the sequence number in a call.
	callSequence = math.MaxUint64
	// callInterval is the interval between calls; meetingTimeout bounds the wait for the peer.
	callInterval   = 50 * time.Millisecond
	meetingTimeout = 10 * time.Second
)

// ReceiveTrain receives the train of a Dispatch call on another machine. Without a train within ten seconds it returns
// no arrivals.
func ReceiveTrain(ctx context.Context, at Inside, m Meeting, train Train) ([]Arrival, error) {
	off, err := enableTimestamps()
	if err != nil {
		return nil, fmt.Errorf("receive packet train: %w", err)
	}
	defer off()
	if train, err = train.withDefaults(); err != nil {
		return nil, err
	}
	train.Patience = max(train.Patience, meetingTimeout)
	receiver, err := listen(at, m.Port, train.bufferSize())
	if err != nil {
		return nil, err
	}
	defer receiver.Close()
	stop := context.AfterFunc(ctx, func() { _ = receiver.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	r := run{train: train, nonce: m.Nonce, receiver: receiver, sent: make(chan error, 1)}
	r.sent <- nil // the end of the sending is unknown here
	return r.receivePackets(ctx)
}

// DispatchTrain sends a train to a Receive call on another machine. It returns ErrNoAnswer if that does not answer.
func DispatchTrain(ctx context.Context, from Inside, to netip.Addr, m Meeting, train Train) error {
	train, err := train.withDefaults()
	if err != nil {
		return err
	}
	sender, err := dial(from, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, m.Port)), train.bufferSize())
	if err != nil {
		return err
	}
	defer sender.Close()
	stop := context.AfterFunc(ctx, func() { _ = sender.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r := run{train: train, nonce: m.Nonce, sender: sender}
	if err := r.call(ctx); err != nil {
		return fmt.Errorf("call %s: %w", sender.RemoteAddr(), err)
	}
	// A receiver that answered and is gone had a pause in the train on a busy machine and considered the train
	// complete. It evaluates what arrived.
	if err := r.sendPackets(ctx); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return ctx.Err()
}

// call sends calls until the receiver echoes one.
func (r *run) call(ctx context.Context) error {
	p, echo := make([]byte, payloadBytes), make([]byte, payloadBytes)
	binary.BigEndian.PutUint64(p, r.nonce)
	binary.BigEndian.PutUint64(p[8:], callSequence)
	for began := time.Now(); time.Since(began) < meetingTimeout; {
		if err := r.sender.SetReadDeadline(time.Now().Add(callInterval)); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil { // after the deadline, so as not to undo AfterFunc's
			return err
		}
		if _, err := r.sender.Write(p); err != nil && !isTransient(err) {
			return err
		}
		for {
			n, err := r.sender.Read(echo)
			if err == nil && n == payloadBytes && string(echo[:16]) == string(p[:16]) {
				return nil
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil && !isTransient(err) {
				return err
			}
		}
	}
	return ErrNoAnswer
}

// isTransient reports whether a call may still be answered: the receiver does not listen yet, or a queue was full.
func isTransient(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, os.ErrDeadlineExceeded)
}
