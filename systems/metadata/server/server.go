// Package server serves the metadata service over HTTP: text commands in the body of a POST, and the same commands in
// JSON.
//
//	POST /           ls /a/b              any path except those below
//	POST /v1/ls      {"path": "/a/b"}     likewise for each operation, and /v1/batch
//	POST /v1/own/ls                       the server's own tree, if it shares one
//	GET  /v1/status, /metrics, /
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/base/bearer"
	"skerry/internal/base/bodylimit"
	"skerry/internal/base/webguard"
	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
)

// Options configures a server. Zero fields mean the defaults.
type Options struct {
	// MaxBody is the maximum size of a request's body in bytes. Default: 8 MiB.
	MaxBody int64
	// MaxBodies is the maximum size of all requests' bodies together. Default: 256 MiB.
	MaxBodies int64
	// MaxConnections is the maximum number of open connections; further ones are closed. Default: 4096.
	MaxConnections int
	// Idle is the maximum time of a connection without a request. Default: 2 min.
	Idle time.Duration
	// Patience is the maximum time for a request to arrive and for its answer to leave. Default: 30 s.
	Patience time.Duration
	Hosts    []string
	// Tokens, if set, are required for all requests except the usage page and pings.
	Tokens *bearer.Tokens
	// Own serves the server's own tree at /v1/own/. nil if the server shares no tree.
	Own metadata.Service
	// Seen returns the servers' log positions for clients that repeat requests. nil: none are sent.
	Seen func() metadata.Seen
	// Status answers /v1/status. nil: not found.
	Status func() protocol.Status
	// Routes are additional routes for administrators by pattern: "POST /v1/members/add".
	Routes     map[string]http.HandlerFunc
	Collectors []prometheus.Collector
	Log        *slog.Logger
}

func (o Options) withDefaults() Options {
	o.MaxBody = cmp.Or(o.MaxBody, 8<<20)
	o.MaxConnections = cmp.Or(o.MaxConnections, 4096)
	o.Idle = cmp.Or(o.Idle, 2*time.Minute)
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

const maxHeader = 64 << 10

// Server is the HTTP handler.
type Server struct {
	service metadata.Service
	o       Options
	metrics *metrics
	mux     *http.ServeMux
	guard   *webguard.Guard
	room    *bodylimit.Budget
}

func New(service metadata.Service, o Options) *Server {
	s := &Server{service: service, o: o.withDefaults(), mux: http.NewServeMux(), guard: webguard.New(nil, o.Hosts...),
		room: bodylimit.NewBudget(o.MaxBodies)}
	s.metrics = newMetrics(o.Collectors)
	for pattern, answer := range s.routes() {
		s.mux.HandleFunc(pattern, answer)
	}
	return s
}

func (s *Server) routes() map[string]http.HandlerFunc {
	routes := map[string]http.HandlerFunc{
		"POST /v1/{op}":  s.handleJSON(s.service),
		"GET /v1/status": s.serveStatus,
		"GET /metrics":   promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP,
	}
	if s.o.Own != nil {
		routes["POST /v1/own/{op}"] = s.handleJSON(s.o.Own)
	}
	for pattern, answer := range s.o.Routes {
		routes[pattern] = s.requireAdmin(answer)
	}
	return routes
}

// Patterns returns the patterns of all routes except the text protocol.
func (s *Server) Patterns() []string { return slices.Sorted(maps.Keys(s.routes())) }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.guard.Check(r); err != nil {
		webguard.WritePlain(w, err)
		return
	}
	named := strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/metrics"
	if (named || r.Method == http.MethodPost) && s.scope(r) == bearer.Public {
		w.Header().Set("WWW-Authenticate", `Bearer realm="skerry"`)
		http.Error(w, "token required: send Authorization: Bearer TOKEN with one of the server's tokens", http.StatusUnauthorized)
		return
	}
	switch {
	case named:
		s.mux.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		s.serveText(w, r)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		w.Header().Set("Content-Type", plain)
		fmt.Fprintf(w, usage, r.Host, metadata.Usage)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "send a command by POST: ls /", http.StatusMethodNotAllowed)
	}
}

const (
	plain = "text/plain; charset=utf-8"
	// nextHeader has the -a argument of the next page.
	nextHeader = "Skerry-Next"

	usage = `The metadata service: POST a command, and its output or error comes back.

	curl -d 'mkdir -p /a/b' http://%s/

%s
Names with spaces are quoted: mkdir "/my dir". Several commands, one a line, are
answered in order, each with a line "STATUS BYTES" before its output.
As JSON: POST /v1/ls {"path": "/"}, and so on; POST /v1/batch {"commands": [...]}
GET /v1/status, GET /metrics
`
)

func (s *Server) serveText(w http.ResponseWriter, r *http.Request) {
	body, held, err := s.readBody(w, r)
	if err != nil {
		return
	}
	defer s.room.Release(held)
	scope := s.scope(r)
	r = withRequest(r)
	a := s.runText(r.Context(), scope, string(body))
	s.setSeenHeader(w, r)
	w.Header().Set("Content-Type", plain)
	if a.next != "" {
		w.Header().Set(nextHeader, metadata.Quote(a.next))
	}
	if a.rest == nil {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	if _, err := w.Write(a.body); err != nil || a.rest == nil {
		return // a failed write means that the client has gone
	}
	deadline := http.NewResponseController(w)
	extend := func() error { return deadline.SetWriteDeadline(time.Now().Add(s.o.Patience)) }
	if err := s.writePages(r.Context(), w, extend, *a.rest); err != nil {
		s.o.Log.Debug("listing aborted", "command", a.rest.String(), "error", err)
		panic(http.ErrAbortHandler) // a truncated listing must not look complete
	}
}

// writePages writes the remaining pages of a listing, each of one moment. extend extends the deadline for a page.
func (s *Server) writePages(ctx context.Context, w io.Writer, extend func() error, c metadata.Command) error {
	var b []byte
	c.Limit = metadata.MaxLimit
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := s.service.Do(ctx, []metadata.Command{c})[0]
		if r.Err != nil {
			return r.Err
		}
		b = appendText(b[:0], c, r)
		if err := extend(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if c.After = r.Next; c.After == "" {
			return nil
		}
	}
}

// BodyBytes returns the size of all bodies in memory.
func (s *Server) BodyBytes() int64 { return s.room.InUse() }

// readBody reads a request's body, which occupies held bytes of the room. On an error it has answered the request.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (b []byte, held int64, err error) {
	b, held, err = s.room.ReadBody(w, r, s.o.MaxBody, s.o.Patience)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, fmt.Sprintf("body exceeds %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
	case errors.Is(err, bodylimit.ErrFull):
		http.Error(w, err.Error()+": nothing was changed", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, "reading the body failed", http.StatusBadRequest)
	}
	return b, held, err
}

// Serve answers requests on a listener until the context ends. It then completes running requests within Patience.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.guard = webguard.New(l.Addr(), s.o.Hosts...)
	h := &http.Server{
		Handler: s, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: s.o.Patience, ReadTimeout: s.o.Patience, WriteTimeout: s.o.Patience, IdleTimeout: s.o.Idle,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(&limitedListener{Listener: l, s: s}) }()
	select {
	case err := <-served:
		return errors.Join(err, h.Close())
	case <-ctx.Done():
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Patience)
	defer cancel()
	err := h.Shutdown(finish)
	if errors.Is(err, context.DeadlineExceeded) {
		err = h.Close() // cuts off longer requests
	}
	<-served // http.ErrServerClosed
	return err
}

type limitedListener struct {
	net.Listener
	s    *Server
	open atomic.Int64
}

func (b *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= int64(b.s.o.MaxConnections) {
			b.s.metrics.open.Inc()
			return &countedConn{Conn: c, end: sync.OnceFunc(func() {
				b.open.Add(-1)
				b.s.metrics.open.Dec()
			})}, nil
		}
		b.open.Add(-1)
		b.s.metrics.refused.Inc()
		if err := c.Close(); err != nil {
			b.s.o.Log.Debug("refusing a connection", "error", err)
		}
	}
}

type countedConn struct {
	net.Conn
	end func()
}

func (c *countedConn) Close() error {
	c.end()
	return c.Conn.Close()
}
