package hydraclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"skerry/internal/base/dialtls"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/framing"
)

// streamRetryAfter is how long an endpoint without streams, such as a load balancer, is used over HTTP only.
const streamRetryAfter = time.Minute

var errNoStream = errors.New("endpoint has no streams")

type endpoint struct {
	client    *Client
	addr      string
	lanes     []lane
	next      atomic.Uint32 // lane of new requests; advances with each batch
	httpUntil atomic.Int64  // no streams until then, in terms of Client.now
}

type lane struct {
	open       atomic.Pointer[stream]
	connecting singleflight.Group
	mu         sync.Mutex // orders a new stream before or after the client's end
}

type stream struct {
	conn   net.Conn
	member string
	out    *framing.Outbox
	down   atomic.Bool // failure is set

	mu      sync.Mutex
	calls   map[uint64]*call
	last    uint64
	failure error
}

type call struct {
	done   chan error
	answer framing.Answer // owns its Value, Problem and Cloud
	member string
}

// calls are reused; their channels are then empty.
var calls = sync.Pool{New: func() any { return &call{done: make(chan error, 1)} }}

// send sends a request and waits. After errNoStream or ErrUnavailable, the request was not executed.
func (e *endpoint) send(ctx context.Context, q *framing.Request, c *call) error {
	if e.httpUntil.Load() > int64(e.client.now()) {
		return errNoStream
	}
	s, err := e.lanes[int(e.next.Load())%len(e.lanes)].acquire(ctx, e)
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		q.Timeout = time.Until(deadline)
	}
	c.member = s.member
	s.mu.Lock()
	if s.failure != nil {
		defer s.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnavailable, s.failure)
	}
	s.last++
	q.ID = s.last
	s.calls[q.ID] = c
	s.mu.Unlock()
	if err := s.out.SendRequest(q); err != nil {
		if errors.Is(err, framing.ErrNotSent) && s.cancelCall(q.ID) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		s.fail(err) // the reader completes the call
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		if s.cancelCall(q.ID) {
			return context.Cause(ctx)
		}
		return <-c.done // answered concurrently
	}
}

// cancelCall removes a pending call; it returns false if the call has its answer.
func (s *stream) cancelCall(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.calls[id]
	delete(s.calls, id)
	return ok
}

func (l *lane) acquire(ctx context.Context, e *endpoint) (*stream, error) {
	if s := l.open.Load(); s != nil && !s.down.Load() {
		return s, nil
	}
	select {
	case r := <-l.connecting.DoChan("", func() (any, error) { return l.connect(e) }):
		return r.Val.(*stream), r.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: connecting to %s: %w", ErrUnavailable, e.addr, context.Cause(ctx))
	}
}

func (l *lane) connect(e *endpoint) (*stream, error) {
	if s := l.open.Load(); s != nil && !s.down.Load() { // connected meanwhile
		return s, nil
	}
	e.next.Add(1) // other requests use the next lane
	s, in, err := e.dial(e.client.ctx)
	if errors.Is(err, errNoStream) {
		e.httpUntil.Store(int64(e.client.now() + streamRetryAfter))
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.client.ctx.Err() != nil {
		s.fail(errClosed)
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errClosed)
	}
	l.open.Store(s)
	e.client.streams.Go(func() {
		s.read(in)
		l.open.CompareAndSwap(s, nil)
	})
	return s, nil
}

func (e *endpoint) dial(ctx context.Context) (*stream, *framing.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := e.client.dial(ctx, "tcp", e.addr)
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*stream, *framing.Reader, error) {
		return nil, nil, errors.Join(err, conn.Close())
	}
	if secure := e.client.config.TLS; secure != nil {
		conn = dialtls.Client(conn, e.addr, secure())
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // a failed connection fails again
	head := "GET " + framing.Path + " HTTP/1.1\r\nHost: " + e.addr + "\r\nConnection: Upgrade\r\nUpgrade: " + framing.Protocol + "\r\n"
	if e.client.bearer != "" {
		head += "Authorization: " + e.client.bearer + "\r\n"
	}
	if _, err := conn.Write([]byte(head + "\r\n")); err != nil {
		return fail(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodGet})
	if err != nil {
		return fail(err)
	}
	_ = resp.Body.Close() // 101 has none; otherwise the connection is closed
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != framing.Protocol {
		return fail(errNoStream)
	}
	if !stop() {
		return fail(context.Cause(ctx))
	}
	s := &stream{conn: conn, member: resp.Header.Get(api.HeaderMember), out: framing.NewOutbox(conn), calls: make(map[uint64]*call)}
	s.out.OnBatch = func() { e.next.Add(1) }
	return s, framing.NewReader(r), nil
}

func (s *stream) read(in *framing.Reader) {
	var err error
	for {
		var b []byte
		if b, err = in.Next(); err != nil {
			break
		}
		var a framing.Answer
		if a, err = framing.DecodeAnswer(b); err != nil {
			break
		}
		s.mu.Lock()
		c := s.calls[a.ID]
		delete(s.calls, a.ID)
		s.mu.Unlock()
		if c == nil {
			continue // cancelled
		}
		a.Value, a.Problem, a.Cloud = slices.Clone(a.Value), slices.Clone(a.Problem), slices.Clone(a.Cloud)
		c.answer = a
		c.done <- nil
	}
	s.fail(err)
	s.mu.Lock()
	left := s.calls
	s.calls = nil
	s.mu.Unlock()
	for _, c := range left {
		c.done <- fmt.Errorf("the stream ended: %w", s.failure)
	}
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
		s.down.Store(true)
		s.out.Fail(err)
		_ = s.conn.Close()
	}
}

// close ends the streams. The client's context has ended, so that none is added.
func (e *endpoint) close() {
	for i := range e.lanes {
		e.lanes[i].mu.Lock()
		if s := e.lanes[i].open.Load(); s != nil {
			s.fail(errClosed)
		}
		e.lanes[i].mu.Unlock()
	}
}

var errClosed = errors.New("client is closed")

// sendStream executes q over a stream. After errNoStream it must be sent over HTTP.
func (c *Client) sendStream(ctx context.Context, e *endpoint, q *request, into any) error {
	k := calls.Get().(*call)
	frame := *q.frame
	if frame.Operation == framing.Get {
		frame.Read, frame.Staleness = byte(max(0, slices.Index(api.Reads, q.read))), q.staleness
	} else {
		frame.Ack = byte(max(0, slices.Index(api.Acks, q.ack)))
	}
	err := e.send(ctx, &frame, k)
	if errors.Is(err, errNoStream) {
		calls.Put(k)
		return err
	}
	if err != nil {
		calls.Put(k)
		if errors.Is(err, ErrUnavailable) {
			return fmt.Errorf("%s %s at %s: %w", q.method, q.path, e.addr, err)
		}
		return transportError(e.addr, q, err)
	}
	a, member := k.answer, k.member
	k.answer = framing.Answer{}
	calls.Put(k)
	if a.Kind == framing.Elsewhere {
		return errNoStream
	}
	if q.meta != nil {
		*q.meta = Meta{Member: member, Staleness: -1}
		switch a.Kind {
		case framing.Row:
			*q.meta = Meta{Member: member, Cloud: string(a.Cloud), Applied: a.Applied, Lag: a.Lag, Staleness: a.Age}
		case framing.Written:
			q.meta.Version = a.Version
		}
	}
	switch to := into.(type) {
	case *api.Row:
		if a.Kind == framing.Row {
			to.Key, to.Version, to.Value = string(frame.Key), a.Version, json.RawMessage(a.Value)
			return nil
		}
	case *api.Written:
		if a.Kind == framing.Written && int(a.Ack) < len(api.Acks) {
			to.Version, to.Ack = a.Version, api.Acks[a.Ack]
			return nil
		}
	}
	if a.Kind != framing.Problem {
		return transportError(e.addr, q, framing.ErrFrame)
	}
	return problemError(e.addr, a.Problem, q.existing)
}

// problemError converts a problem of a stream. existing means that the first check was that the row exists.
func problemError(endpoint string, text []byte, existing bool) error {
	e := &Error{Endpoint: endpoint}
	if err := json.Unmarshal(text, &e.Problem); err != nil || e.Code == "" {
		e.Problem = api.Problem{Code: api.CodeInternal, Message: strings.TrimSpace(string(text[:min(len(text), 200)]))}
	}
	if existing && e.Code == api.CodeCheckFailed && e.Failed != nil && *e.Failed == 0 {
		e.Problem = api.Problem{Code: api.CodeNotFound, Message: "no such row"}
	}
	e.Status = api.StatusOf(e.Code)
	return e.classify()
}
