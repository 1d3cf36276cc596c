package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"skerry/internal/base/bearer"
	"skerry/internal/base/intake"
	"skerry/internal/system/metadata"
)

// Commands are a line or two, and net/http spends on a request several times what the
// command costs. So a connection begins here: requests such as most are (head) are read
// and answered in place, those that were sent without waiting for answers together. The
// first that is anything else is handed to net/http, with the connection, for good.

const (
	// readBuffer is what of a connection is read at once.
	readBuffer = 4 << 10
	// maxTogether is how many requests that came together are run together.
	maxTogether = 256
)

// conn is a connection that is read here.
type conn struct {
	net.Conn
	s   *Server
	r   *bufio.Reader
	out []byte
	// host and auth are the last Host and Authorization that were let pass, the latter with what
	// it allows: of a connection's requests, all have the same ones.
	host, auth []byte
	scope      bearer.Scope
	held       int64 // by the bodies of the requests that are being answered
}

// known tells whether the server answers to a request. One that it does not is answered by
// net/http's way, which tells why.
func (c *conn) known(h head) bool {
	if len(c.host) == 0 || !bytes.Equal(c.host, h.host) {
		if !c.s.guard.Host(string(h.host)) {
			return false
		}
		c.host = append(c.host[:0], h.host...)
	}
	if c.s.o.Tokens == nil {
		c.scope = bearer.Admin
		return true
	}
	if len(c.auth) == 0 || subtle.ConstantTimeCompare(c.auth, h.auth) != 1 {
		scope := c.s.o.Tokens.Scope(string(h.auth))
		if scope == bearer.Public {
			return false
		}
		c.auth, c.scope = append(c.auth[:0], h.auth...), scope
	}
	return true
}

// serve answers requests until the connection ends, or gives it to elsewhere.
func (c *conn) serve(ctx context.Context, elsewhere *handover) error {
	whole := context.WithoutCancel(ctx) // what has begun is finished
	for {
		if err := c.SetReadDeadline(time.Now().Add(c.s.o.Idle)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil // the deadline may have come behind the one that ends it
		}
		if _, err := c.r.Peek(1); err != nil {
			return err
		}
		bodies, more, err := c.requests()
		if err != nil {
			return err
		}
		err = c.answerAll(whole, bodies)
		c.s.room.Give(c.held)
		c.held = 0
		if err != nil {
			return err
		}
		if !more {
			return elsewhere.give(ctx, c)
		}
	}
}

// requests reads the first request, and those that have arrived behind it. more is false
// where one follows that is not read here.
func (c *conn) requests() (bodies []string, more bool, err error) {
	for len(bodies) < maxTogether {
		b, _ := c.r.Peek(c.r.Buffered())
		h, ok, complete := parseHead(b, c.s.o.MaxBody)
		if len(bodies) > 0 && ok && complete && c.s.o.Tokens != nil && !bytes.Equal(h.auth, c.auth) {
			return bodies, true, nil // what runs together has one token
		}
		ok = ok && (!complete || c.known(h))
		switch {
		case !ok || !complete && len(b) == c.r.Size():
			return bodies, false, nil
		case len(bodies) > 0 && (!complete || int64(len(b)-h.size) < h.length):
			return bodies, true, nil
		case !complete:
			if err := c.await(len(b) + 1); err != nil {
				return nil, false, err
			}
			continue
		}
		body, err := c.body(h)
		if err != nil {
			return nil, false, err
		}
		bodies = append(bodies, body)
		if c.r.Buffered() == 0 {
			break
		}
	}
	return bodies, true, nil
}

// await waits until n bytes are buffered. A request that has begun must be there within
// the server's patience.
func (c *conn) await(n int) error {
	if n == 2 || c.r.Buffered() < n {
		if err := c.hurry(); err != nil {
			return err
		}
	}
	_, err := c.r.Peek(n)
	return err
}

func (c *conn) hurry() error { return c.SetReadDeadline(time.Now().Add(c.s.o.Patience)) }

// body takes a request from the connection.
func (c *conn) body(h head) (string, error) {
	if _, err := c.r.Discard(h.size); err != nil {
		return "", err
	}
	if int64(c.r.Buffered()) < h.length {
		if err := c.hurry(); err != nil {
			return "", err
		}
	}
	if h.length <= readBuffer {
		if b, err := c.r.Peek(int(h.length)); err == nil {
			body := string(b)
			_, err := c.r.Discard(len(b))
			return body, err
		}
	}
	rest := &io.LimitedReader{R: c.r, N: h.length}
	b, held, err := c.s.room.Read(rest, h.length)
	c.held += held
	if errors.Is(err, intake.ErrFull) {
		// What is still to come is read past: a connection that is closed before it takes the
		// answer with it.
		_, late := io.Copy(io.Discard, rest)
		return "", errors.Join(err, c.refuse(err), late)
	}
	return string(b), err
}

// refuse answers a request that there is no room for. The connection ends behind it, and the answer
// says so: a client that sent its next request there would find it reset.
func (c *conn) refuse(why error) error {
	text := why.Error() + ": nothing was changed\n"
	c.out = c.s.appendHead(c.out[:0], &answer{status: http.StatusServiceUnavailable, body: []byte(text), last: true})
	c.out = append(c.out, text...)
	return c.flush()
}

// answerAll answers requests, in one write where no listing is long.
func (c *conn) answerAll(ctx context.Context, bodies []string) error {
	c.out = c.out[:0]
	answers := c.s.answers(ctx, c.scope, bodies)
	for i := range answers {
		a := &answers[i]
		c.out = c.s.appendHead(c.out, a)
		if a.rest == nil {
			c.out = append(c.out, a.body...)
			continue
		}
		w := &chunked{c: c}
		if _, err := w.Write(a.body); err != nil {
			return err
		}
		if err := c.s.pages(ctx, w, w.extend, *a.rest); err != nil {
			return err // a listing without its end does not look like a whole one
		}
		c.out = append(c.out, "0\r\n\r\n"...)
	}
	err := c.flush()
	if cap(c.out) > 16*readBuffer {
		c.out = nil
	}
	return err
}

func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	if err := c.SetWriteDeadline(time.Now().Add(c.s.o.Patience)); err != nil {
		return err
	}
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

func (s *Server) appendHead(b []byte, a *answer) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(a.status), 10)
	b = append(append(b, ' '), http.StatusText(a.status)...)
	b = append(b, "\r\nDate: "...)
	b = append(b, s.date()...)
	b = append(b, "\r\nContent-Type: "+plain+"\r\n"...)
	if a.next != "" {
		b = append(append(b, nextHeader+": "...), metadata.Quote(a.next)...)
		b = append(b, "\r\n"...)
	}
	if a.last {
		b = append(b, "Connection: close\r\n"...)
	}
	if a.rest != nil {
		return append(b, "Transfer-Encoding: chunked\r\n\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(a.body)), 10)
	return append(b, headEnd...)
}

// chunked writes a body in chunks, each of which has its length before it.
type chunked struct{ c *conn }

func (w *chunked) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // it would be the end
	}
	w.c.out = strconv.AppendInt(w.c.out, int64(len(p)), 16)
	w.c.out = append(append(append(w.c.out, headEnd[:2]...), p...), headEnd[:2]...)
	return len(p), w.c.flush()
}

func (w *chunked) extend() error { return nil } // flush does

// handover is the listener of the net/http server: connections whose first requests were
// answered here, or none.
type handover struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	addr  net.Addr
}

// errKept means that a connection goes on elsewhere.
var errKept = errors.New("handed over")

func (h *handover) give(ctx context.Context, c *conn) error {
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
		return err
	}
	b, _ := c.r.Peek(c.r.Buffered())
	select {
	case h.conns <- &prefixed{Conn: c.Conn, first: append([]byte(nil), b...)}:
		return errKept
	case <-ctx.Done():
	case <-h.done:
	}
	return net.ErrClosed
}

func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func (h *handover) Addr() net.Addr { return h.addr }

// prefixed is a connection of which something was read already.
type prefixed struct {
	net.Conn
	first []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.first) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.first)
	p.first = p.first[n:]
	return n, nil
}

// stamp is a Date header and the second that it is of.
type stamp struct {
	second int64
	text   string
}

// date is the time as HTTP writes it; it is written once a second.
func (s *Server) date() string {
	now := time.Now()
	if last := s.stamp.Load(); last != nil && last.second == now.Unix() {
		return last.text
	}
	next := &stamp{second: now.Unix(), text: now.UTC().Format(http.TimeFormat)}
	s.stamp.Store(next)
	return next.text
}
