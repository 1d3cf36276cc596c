package api

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry/internal/base/bearer"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/framing"
)

type streams struct {
	ctx    context.Context // ends with the member
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	open  map[*stream]bool
	ended bool

	operations map[framing.Operation]measured
}

type measured struct {
	route   string
	seconds prometheus.Observer
	ok      prometheus.Counter
}

func (s *streams) init() {
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.open = make(map[*stream]bool)
}

func (s *streams) registerMetrics(server *Server) {
	s.operations = make(map[framing.Operation]measured)
	for o, name := range map[framing.Operation]string{framing.Get: "STREAM get", framing.Transact: "STREAM transact"} {
		s.operations[o] = measured{name, server.seconds.WithLabelValues(name), server.requests.WithLabelValues(name, "200")}
	}
}

func (s *streams) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for c := range s.open {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection has ended
	}
}

// Close ends the streams, and waits until ctx ends for requests in progress.
func (s *Server) Close(ctx context.Context) {
	s.streams.drain()
	stop := context.AfterFunc(ctx, s.streams.cancel)
	defer stop()
	s.streams.all.Wait()
	s.streams.cancel()
}

type stream struct {
	s      *Server
	conn   net.Conn
	in     *framing.Reader
	out    *framing.Outbox
	scope  bearer.Scope
	inline InlineReader // nil: no inline reads
	all    sync.WaitGroup
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request) error {
	upgrade := slices.ContainsFunc(r.Header.Values("Connection"), func(v string) bool { return strings.EqualFold(v, "Upgrade") })
	if !upgrade || r.Header.Get("Upgrade") != framing.Protocol {
		return Problemf(CodeBadRequest, "a stream begins with Connection: Upgrade and Upgrade: %s", framing.Protocol)
	}
	scope := s.Tokens.Scope(r.Header.Get("Authorization"))
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return Problemf(CodeBadRequest, "no stream on this connection: %v", err)
	}
	c := &stream{s: s, conn: conn, in: framing.NewReader(buffered.Reader), out: framing.NewOutbox(conn), scope: scope}
	c.in.SetLimits(s.room, s.Patience, c.deadline)
	c.inline, _ = s.Backend.(InlineReader)
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	if s.streams.ended {
		_ = conn.Close() // draining
		return nil
	}
	s.streams.open[c] = true
	_ = conn.SetDeadline(time.Time{}) // a failed connection fails again
	s.streams.all.Go(c.serve)
	return nil
}

// deadline sets the read deadline of a frame. The deadline of drain stays.
func (c *stream) deadline(at time.Time) error {
	c.s.streams.mu.Lock()
	defer c.s.streams.mu.Unlock()
	if c.s.streams.ended {
		return nil
	}
	return c.conn.SetReadDeadline(at)
}

func (c *stream) serve() {
	defer func() {
		c.all.Wait()
		_ = c.out.Flush() // the client may have gone
		_ = c.conn.Close()
		c.s.streams.mu.Lock()
		delete(c.s.streams.open, c)
		c.s.streams.mu.Unlock()
	}()
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
		"" + framing.Protocol + "\r\n" + HeaderMember + ": " + c.s.Member + "\r\n\r\n"
	if _, err := c.conn.Write([]byte(head)); err != nil {
		return
	}
	for {
		b, err := c.in.Next()
		if err != nil {
			return
		}
		held, long := c.in.Long()
		q, err := framing.DecodeRequest(b)
		if err != nil {
			c.s.room.Release(held)
			return
		}
		if c.s.inFlight.Add(1) > c.s.InFlight {
			c.s.inFlight.Add(-1)
			c.s.shed.Inc()
			c.sendProblem(q.ID, Problemf(CodeOverloaded, "%d requests are in flight", c.s.InFlight))
		} else if want, ok := c.runsInline(&q); ok {
			c.get(c.s.streams.ctx, &q, want)
			c.s.inFlight.Add(-1)
		} else {
			if !long {
				q = cloneRequest(q)
			}
			c.all.Go(func() {
				defer c.s.room.Release(held)
				c.perform(&q)
			})
			continue
		}
		c.s.room.Release(held)
		if !c.in.HasFrame() && c.out.Flush() != nil {
			return
		}
	}
}

func cloneRequest(q framing.Request) framing.Request {
	q.Table, q.Key, q.Transaction = slices.Clone(q.Table), slices.Clone(q.Key), slices.Clone(q.Transaction)
	return q
}

func requestedRead(q *framing.Request) (Consistency, bool) {
	if q.Operation != framing.Get || int(q.Read) >= len(Reads) {
		return Consistency{}, false
	}
	return Consistency{Reads[q.Read], q.Staleness}, true
}

func (c *stream) runsInline(q *framing.Request) (Consistency, bool) {
	w, ok := requestedRead(q)
	return w, ok && c.inline != nil && c.inline.ReadsInline(w)
}

func (c *stream) perform(q *framing.Request) {
	defer c.s.inFlight.Add(-1)
	timeout := c.s.Timeout
	if q.Timeout > 0 {
		timeout = min(timeout, q.Timeout)
	}
	ctx, cancel := context.WithTimeout(c.s.streams.ctx, timeout)
	defer cancel()
	if q.Operation == framing.Transact {
		c.transact(ctx, q)
	} else if w, ok := requestedRead(q); ok {
		c.get(ctx, q, w)
	} else {
		c.sendError(q, Problemf(CodeBadRequest, "no such read"))
	}
	_ = c.out.Flush() // the reader notices that the connection has failed
}

func (c *stream) get(ctx context.Context, q *framing.Request, w Consistency) {
	began := time.Now()
	table, key := string(q.Table), string(q.Key)
	err := command.ValidTable(table)
	if err == nil {
		err = command.ValidKey(key)
	}
	if err != nil {
		c.sendError(q, badRequest(err))
		return
	}
	row, f, err := c.s.Backend.Get(ctx, table, key, w)
	if err != nil {
		c.sendError(q, err)
		return
	}
	a := framing.Answer{ID: q.ID, Kind: framing.Row, Version: row.Version, Applied: f.Applied, Lag: f.Lag, Age: f.Staleness,
		Cloud: []byte(f.Cloud), Value: row.Value}
	_ = c.out.AddAnswer(&a) // the reader notices that the connection has failed
	c.recordSuccess(q.Operation, began)
}

func (c *stream) recordSuccess(o framing.Operation, began time.Time) {
	m := c.s.streams.operations[o]
	m.seconds.Observe(time.Since(began).Seconds())
	m.ok.Inc()
}

func (c *stream) transact(ctx context.Context, q *framing.Request) {
	began := time.Now()
	if c.scope < bearer.Write {
		c.sendError(q, Problemf(CodeForbidden, "the token allows to %v, this needs one that allows to %v", c.scope, bearer.Write))
		return
	}
	if int(q.Ack) >= len(Acks) {
		c.sendError(q, Problemf(CodeBadRequest, "no such acknowledgement"))
		return
	}
	t, err := command.Decode(q.Transaction)
	if err == nil {
		err = t.Normalize()
	}
	if errors.Is(err, command.ErrInvalid) {
		err = badRequest(err)
	}
	if err != nil {
		c.sendError(q, err)
		return
	}
	done, err := c.s.Backend.Write(ctx, &t, Acks[q.Ack])
	if err != nil {
		c.sendError(q, err)
		return
	}
	_ = c.out.AddAnswer(&framing.Answer{ID: q.ID, Kind: framing.Written, Version: done.Version, Ack: byte(slices.Index(Acks, done.Ack))})
	c.recordSuccess(q.Operation, began)
}

func (c *stream) sendError(q *framing.Request, err error) {
	var elsewhere *Elsewhere
	if errors.As(err, &elsewhere) {
		_ = c.out.AddAnswer(&framing.Answer{ID: q.ID, Kind: framing.Elsewhere})
		return
	}
	p := c.s.problemOf(err, q.Operation == framing.Transact, c.s.streams.operations[q.Operation].route)
	c.sendProblem(q.ID, p)
	c.s.requests.WithLabelValues(c.s.streams.operations[q.Operation].route, strconv.Itoa(StatusOf(p.Code))).Inc()
}

func (c *stream) sendProblem(id uint64, p *Problem) {
	text, err := json.Marshal(p)
	if err != nil { // a problem always marshals
		text = []byte(`{"code":"` + CodeInternal + `"}`)
	}
	_ = c.out.AddAnswer(&framing.Answer{ID: id, Kind: framing.Problem, Problem: text})
}
