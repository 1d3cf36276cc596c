package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/load"
)

// lane is one worker's connection to one node. Commands are queued on it, sent in one
// write, and their replies read in order.
//
//	out  [ request | request | ... ]            what is queued
//	in   [ reply | reply | rest of a reply ...] all that was read in this operation
//	                       ^ at
//
// A reply stays where it was read until the operation ends, so that records need
// not be copied.
type lane struct {
	addr string
	conn net.Conn // nil when there is none
	out  []byte
	in   []byte
	at   int
	used time.Time // when it was last sent on
	// waiting are the calls whose replies are outstanding, by index.
	waiting []int
}

const (
	readAhead = 8 << 10
	// keepBuffer is how much memory a lane keeps from one operation to the next.
	keepBuffer = 1 << 20
	// idleAfter is how long a lane may have been idle to be trusted unseen. A server
	// that has ended meanwhile is thus found out before an operation is sent to it
	// and is in doubt.
	idleAfter = 100 * time.Millisecond
)

// begin forgets the replies of the operation before.
func (l *lane) begin() {
	if cap(l.in) > keepBuffer {
		l.in = nil
	}
	l.in, l.at = l.in[:0], 0
	l.out, l.waiting = l.out[:0], l.waiting[:0]
}

// dial connects. Its errors are certain: nothing was sent.
func (l *lane) dial(ctx context.Context, s settings, deadline time.Time) error {
	d := net.Dialer{Deadline: deadline}
	conn, err := d.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return load.Failed(dialClass(err), l.addr, fmt.Errorf("connecting to %s: %w", l.addr, err))
	}
	l.conn = conn
	if s.password == "" {
		return nil
	}
	words := []string{"AUTH", s.password}
	if s.user != "" {
		words = []string{"AUTH", s.user, s.password}
	}
	from := l.at
	if err := errors.Join(conn.SetDeadline(deadline), l.send(appendCommand(nil, words...)), l.skip()); err != nil {
		l.close()
		return load.Failed("auth", l.addr, fmt.Errorf("logging in to %s: %w", l.addr, err))
	}
	if e, _, _, _ := parse(l.in, from); e.kind == kindError {
		l.close()
		return load.Failed("auth", l.addr, fmt.Errorf("logging in to %s: %s", l.addr, e.text))
	}
	return nil
}

// alive tells whether the server has not closed an idle connection.
func (l *lane) alive() bool {
	c, ok := l.conn.(syscall.Conn)
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

// send writes requests.
func (l *lane) send(requests []byte) error {
	n, err := l.conn.Write(requests)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("sending to %s: %w", l.addr, err)
	if n == 0 {
		return load.Failed(wireClass(err), l.addr, err)
	}
	return load.Unknown(wireClass(err), l.addr, err)
}

// skip reads up to the end of the next reply.
func (l *lane) skip() error {
	for need := int64(1); need > 0; {
		e, next, ok, err := parse(l.in, l.at)
		if err != nil {
			return load.Unknown("protocol", l.addr, fmt.Errorf("reading from %s: %w", l.addr, err))
		}
		if !ok {
			if err := l.more(); err != nil {
				err = fmt.Errorf("reading from %s: %w", l.addr, err)
				return load.Unknown(wireClass(err), l.addr, err)
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

// more reads what has arrived. Replies read before stay valid: a buffer that is too
// small is replaced, not moved.
func (l *lane) more() error {
	if cap(l.in)-len(l.in) < readAhead/2 {
		l.in = slices.Grow(l.in, max(readAhead, len(l.in)))
	}
	n, err := l.conn.Read(l.in[len(l.in):cap(l.in)])
	l.in = l.in[:len(l.in)+n]
	if n > 0 {
		return nil
	}
	return err
}

// close drops the connection; what was read stays.
func (l *lane) close() {
	if l.conn != nil {
		l.conn.Close() // nothing is lost: every reply wanted has been read, or is in doubt
		l.conn = nil
	}
	l.in = l.in[:l.at]
}
