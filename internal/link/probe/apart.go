package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// Meeting is how the two ends of a train find each other that are on different machines, each
// asked by itself:
//
//	sender ── call, call, ... ──► receiver     until it listens
//	       ◄───────────── echo ──
//	       ── the train ────────►              the pace is taken here, by one clock
//
// The clocks of the two need not agree: of a packet's delay only the difference to the
// quickest one's is used.
type Meeting struct {
	Port  uint16 `json:"port"`  // that the receiver listens on
	Nonce uint64 `json:"nonce"` // that the train's packets carry
}

const (
	// called is in place of the sequence number of a call.
	called = math.MaxUint64
	// callEvery is how often the sender calls, meeting how long the ends wait for each other.
	callEvery = 50 * time.Millisecond
	meeting   = 10 * time.Second
)

// Receive is the end of Send that takes the train in, where Dispatch is the other one. Without
// a train within ten seconds it returns nothing.
func Receive(ctx context.Context, at Inside, m Meeting, train Train) ([]Arrival, error) {
	off, err := holdStamps()
	if err != nil {
		return nil, fmt.Errorf("receiving a packet train: %w", err)
	}
	defer off()
	if train, err = train.filled(); err != nil {
		return nil, err
	}
	train.Patience = max(train.Patience, meeting)
	receiver, err := listen(at, m.Port, train.buffer())
	if err != nil {
		return nil, err
	}
	defer receiver.Close()
	stop := context.AfterFunc(ctx, func() { _ = receiver.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	r := run{train: train, nonce: m.Nonce, receiver: receiver, sent: make(chan error, 1)}
	r.sent <- nil // when the sending is over nobody knows here
	return r.pull(ctx)
}

// Dispatch is the end of Send that sends the train, to where Receive takes it in. ErrNoAnswer
// where nobody does.
func Dispatch(ctx context.Context, from Inside, to netip.Addr, m Meeting, train Train) error {
	train, err := train.filled()
	if err != nil {
		return err
	}
	sender, err := dial(from, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, m.Port)), train.buffer())
	if err != nil {
		return err
	}
	defer sender.Close()
	stop := context.AfterFunc(ctx, func() { _ = sender.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r := run{train: train, nonce: m.Nonce, sender: sender}
	if err := r.call(ctx); err != nil {
		return fmt.Errorf("meeting %s: %w", sender.RemoteAddr(), err)
	}
	// A receiver that is gone, though it had listened, took the train for over: on a busy machine, in a pause of
	// it. What it makes of what arrived is its own.
	if err := r.push(ctx); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return ctx.Err()
}

// call returns when the receiver has echoed a call.
func (r *run) call(ctx context.Context) error {
	p, echo := make([]byte, mark), make([]byte, mark)
	binary.BigEndian.PutUint64(p, r.nonce)
	binary.BigEndian.PutUint64(p[8:], called)
	for began := time.Now(); time.Since(began) < meeting; {
		if err := r.sender.SetReadDeadline(time.Now().Add(callEvery)); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil { // after the deadline, lest it undo AfterFunc's
			return err
		}
		if _, err := r.sender.Write(p); err != nil && !mayPass(err) {
			return err
		}
		for {
			n, err := r.sender.Read(echo)
			if err == nil && n == mark && string(echo[:16]) == string(p[:16]) {
				return nil
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil && !mayPass(err) {
				return err
			}
		}
	}
	return ErrNoAnswer
}

// mayPass tells whether a call may be answered yet: nobody listens so far, or a queue was full.
func mayPass(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, os.ErrDeadlineExceeded)
}
