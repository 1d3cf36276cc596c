package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/load"
)

// lane is one worker's connection to one node. Commands are queued on it, sent in one
// write, and their replies read in order.
//
//	out  [ request | request | ... ]            what is queued
//	in   [ reply | reply | rest of a reply ...] all that was read in this operation
//	                       ^ at
//
// A reply stays in place until the operation ends, so that records need no copy.
type lane struct {
	addr string
	conn net.Conn // nil when there is none
	out  []byte
	in   []byte
	at   int
	used time.Time // time of the last send
	// State of exchange.
	raw    syscall.RawConn // nil where conn has none
	step   func(fd uintptr) bool
	sent   int // bytes of out
	asked  bool
	failed error
	// waiting are the calls whose replies are outstanding, by index.
	waiting []int
}

const (
	readAhead = 8 << 10
	// maxKeptBuffer bounds the buffer that a lane keeps between operations.
	maxKeptBuffer = 1 << 20
	// idleAfter is the idle time after which a lane is checked before use.
	idleAfter = 100 * time.Millisecond
)

// reset discards the replies of the previous operation.
func (l *lane) reset() {
	if cap(l.in) > maxKeptBuffer {
		l.in = nil
	}
	l.in, l.at = l.in[:0], 0
	l.out, l.waiting = l.out[:0], l.waiting[:0]
}

// dial connects. Nothing was sent if it fails.
func (l *lane) dial(ctx context.Context, r *router, deadline time.Time) error {
	dial := r.dial
	if dial == nil {
		dial = (&net.Dialer{Deadline: deadline}).DialContext
	}
	conn, err := dial(ctx, "tcp", l.addr)
	if err != nil {
		return load.Failed(database.DialErrorClass(err), l.addr, fmt.Errorf("connecting to %s: %w", l.addr, err))
	}
	l.conn = conn
	l.raw, l.step = nil, l.exchangeStep
	if c, ok := conn.(syscall.Conn); ok {
		if l.raw, err = c.SyscallConn(); err != nil {
			l.close()
			return load.Failed(database.DialErrorClass(err), l.addr, fmt.Errorf("connecting to %s: %w", l.addr, err))
		}
	}
	if err := conn.SetDeadline(deadline); err != nil {
		l.close()
		return load.Failed(database.DialErrorClass(err), l.addr, fmt.Errorf("connecting to %s: %w", l.addr, err))
	}
	if config := r.login.TLSTo(l.addr); config != nil {
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			l.close()
			return load.Failed("tls", l.addr, fmt.Errorf("connecting to %s: %w", l.addr, err))
		}
		l.conn, l.raw = secure, nil
	}
	switch user, password := r.login.User, r.login.Password.Reveal(); {
	case password == "":
	case user == "":
		err = l.sendHandshake("AUTH", password)
	default:
		err = l.sendHandshake("AUTH", user, password)
	}
	if err == nil && r.hello != nil {
		err = l.sendHandshake(r.hello...)
	}
	return err
}

// sendHandshake sends a command that starts a connection, and checks its reply.
func (l *lane) sendHandshake(words ...string) error {
	from := l.at
	err := l.send(appendCommand(nil, words...))
	if err == nil {
		err = l.skipReply()
	}
	if err == nil {
		if e, _, _, _ := parseElement(l.in, from); e.kind == kindError {
			err = errors.New(string(e.text))
		}
	}
	if err != nil {
		l.close()
		return load.Failed("auth", l.addr, fmt.Errorf("logging in to %s: %w", l.addr, err))
	}
	return nil
}

func (l *lane) alive() bool {
	conn := l.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var peeked error
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, peeked = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && errors.Is(peeked, unix.EAGAIN)
}

// exchange sends the queue and reads the first part of the replies, in three system calls:
//
//	watch for readable ─ write ─ wait ─ read
//
// Write and Read of a conn need a fourth: a read before the wait that returns nothing.
// Watching starts before the write, so that no reply is missed. If the socket's buffer is
// full, send writes the rest of the request.
func (l *lane) exchange() error {
	l.growBuffer()
	l.sent, l.asked, l.failed = 0, false, nil
	err := l.raw.Read(l.step)
	if err == nil {
		err = l.failed
	}
	if err != nil {
		err = fmt.Errorf("exchange with %s: %w", l.addr, err)
		if l.sent == 0 {
			return load.Failed(database.ErrorClass(err), l.addr, err)
		}
		return load.Unknown(database.ErrorClass(err), l.addr, err)
	}
	if l.sent < len(l.out) {
		return l.send(l.out[l.sent:])
	}
	return nil
}

// exchangeStep advances an exchange. It returns false to wait for a readable socket.
func (l *lane) exchangeStep(fd uintptr) bool {
	if !l.asked {
		n, err := unix.Write(int(fd), l.out)
		if l.sent = max(n, 0); err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			l.failed = err
		}
		l.asked = l.sent == len(l.out)
		return !l.asked
	}
	n, err := unix.Read(int(fd), l.in[len(l.in):cap(l.in)])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return false
	case err != nil:
		l.failed = err
	case n == 0:
		l.failed = io.EOF
	default:
		l.in = l.in[:len(l.in)+n]
	}
	return true
}

func (l *lane) send(requests []byte) error {
	n, err := l.conn.Write(requests)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("sending to %s: %w", l.addr, err)
	if n == 0 {
		return load.Failed(database.ErrorClass(err), l.addr, err)
	}
	return load.Unknown(database.ErrorClass(err), l.addr, err)
}

func (l *lane) skipReply() error {
	for need := int64(1); need > 0; {
		if _, next, ok := parseShortBulk(l.in, l.at); ok {
			l.at = next
			need--
			continue
		}
		e, next, ok, err := parseElement(l.in, l.at)
		if err != nil {
			return load.Unknown("protocol", l.addr, fmt.Errorf("reading from %s: %w", l.addr, err))
		}
		if !ok {
			if err := l.readMore(); err != nil {
				err = fmt.Errorf("reading from %s: %w", l.addr, err)
				return load.Unknown(database.ErrorClass(err), l.addr, err)
			}
			continue
		}
		l.at = next
		need--
		if e.kind == kindArray && e.n > 0 {
			need += e.n
		}
	}
	return nil
}

// readMore reads available bytes. A full buffer is replaced, so that earlier replies stay valid.
func (l *lane) readMore() error {
	l.growBuffer()
	n, err := l.conn.Read(l.in[len(l.in):cap(l.in)])
	l.in = l.in[:len(l.in)+n]
	if n > 0 {
		return nil
	}
	return err
}

func (l *lane) growBuffer() {
	if cap(l.in)-len(l.in) < readAhead/2 {
		l.in = slices.Grow(l.in, max(readAhead, len(l.in)))
	}
}

// close closes the connection and keeps complete replies.
func (l *lane) close() {
	if l.conn != nil {
		l.conn.Close() // every reply has been read or is in doubt
		l.conn = nil
	}
	l.in = l.in[:l.at]
}
