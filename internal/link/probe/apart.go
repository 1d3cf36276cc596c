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

// Meeting identifies a train between two machines. Each end runs in a call of its own:
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
	// called replaces the sequence number in a call.
	callSequence = math.MaxUint64
	// callEvery is the interval between calls; meeting bounds the wait for the other end.
	callInterval = 50 * time.Millisecond
	meetingTimeout   = 10 * time.Second
)

// ReceiveTrain receives the train of a Dispatch call on another machine. Without a train within ten seconds it returns
// no arrivals.
func ReceiveTrain(ctx context.Context, at Inside, m Meeting, train Train) ([]Arrival, error) {
	off, err := enableTimestamps()
	if err != nil {
		return nil, fmt.Errorf("receiving a packet train: %w", err)
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
		return fmt.Errorf("meeting %s: %w", sender.RemoteAddr(), err)
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
