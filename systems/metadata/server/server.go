// Package server is the metadata service's protocol: HTTP, with a command in the body of
// a POST, and its output or error in the body of the answer; and the same in JSON.
//
//	POST /           ls /a/b              any path but those below
//	POST /v1/ls      {"path": "/a/b"}     and so on for each operation, and /v1/batch
//	POST /v1/own/ls                      of the server's own tree, where several share one
//	GET  /v1/status, /metrics, /
package server

import (
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

// Service is what answers commands: a store, or what forwards them to one.
type Service interface {
	// Do runs commands that passed Check one after the other, and returns as many results.
	Do(ctx context.Context, commands []metadata.Command) []metadata.Result
}

// Options are a server's limits. Zero fields mean the defaults.
type Options struct {
	// MaxBody is the most bytes of a request's body; 8 MiB.
	MaxBody int64
	// MaxBodies is the most bytes that the bodies of all requests hold together; 256 MiB.
	MaxBodies int64
	// MaxConnections is how many connections may be open; 4096. One more is closed.
	MaxConnections int
	// Idle is how long a connection may be without a request; 2 min.
	Idle time.Duration
	// Patience is how long a request may take to arrive, and its answer to leave; 30 s.
	Patience time.Duration
	// Hosts are further names that the server answers to.
	Hosts []string
	// Tokens, when set, are asked of every request but for the usage and for pings.
	Tokens *bearer.Tokens
	// Own answers the same for the server's own tree at /v1/own/; nil where service does.
	Own Service
	// Seen is how far the servers' logs are, for clients that may have to ask again; nil where
	// nobody is told.
	Seen func() metadata.Seen
	// Status is what /v1/status answers, nil where there is nothing to tell.
	Status func() protocol.Status
	// Routes are answered too, by pattern: "POST /v1/members/add". They are for administrators.
	Routes map[string]http.HandlerFunc
	// Collectors are added to /metrics.
	Collectors []prometheus.Collector
	Log        *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxBody == 0 {
		o.MaxBody = 8 << 20
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = 4096
	}
	if o.Idle == 0 {
		o.Idle = 2 * time.Minute
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// maxHeader is the most bytes of a request's headers.
const maxHeader = 64 << 10

// Server answers HTTP requests.
type Server struct {
	service Service
	o       Options
	metrics *metrics
	mux     *http.ServeMux
	guard   *webguard.Guard
	room    *bodylimit.Room
}

// New is a server of a service.
func New(service Service, o Options) *Server {
	s := &Server{service: service, o: o.withDefaults(), mux: http.NewServeMux(), guard: webguard.New(nil, o.Hosts...), room: bodylimit.NewRoom(o.MaxBodies)}
	s.metrics = newMetrics(o.Collectors)
	for pattern, answer := range s.routes() {
		s.mux.HandleFunc(pattern, answer)
	}
	return s
}

// routes are what is answered besides the text form, by the mux's patterns.
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

// Patterns are what the server answers besides the text form, as http.ServeMux has them.
func (s *Server) Patterns() []string { return slices.Sorted(maps.Keys(s.routes())) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.guard.Check(r); err != nil {
		webguard.Plain(w, err)
		return
	}
	named := strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/metrics"
	if (named || r.Method == http.MethodPost) && s.scope(r) == bearer.Public {
		w.Header().Set("WWW-Authenticate", `Bearer realm="skerry"`)
		http.Error(w, "a token is needed: send Authorization: Bearer TOKEN with one of the server's tokens", http.StatusUnauthorized)
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
		http.Error(w, "POST a command in the body: ls /", http.StatusMethodNotAllowed)
	}
}

const (
	plain = "text/plain; charset=utf-8"
	// nextHeader is where the next page begins, as a word of the protocol.
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
	defer s.room.Give(held)
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
		return // who is gone needs no answer
	}
	deadline := http.NewResponseController(w)
	extend := func() error { return deadline.SetWriteDeadline(time.Now().Add(s.o.Patience)) }
	if err := s.writePages(r.Context(), w, extend, *a.rest); err != nil {
		s.o.Log.Debug("a listing was cut short", "command", a.rest.String(), "error", err)
		panic(http.ErrAbortHandler) // a listing without its end must not look like a whole one
	}
}

// writePages writes the rest of a listing, page by page, each of which is of one moment;
// extend gives the next more time.
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

// BodyBytes is what the bodies of requests hold, in bytes.
func (s *Server) BodyBytes() int64 { return s.room.Held() }

// readBody reads a request's body, which holds so many bytes of the room then; where it cannot, it has
// answered.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (b []byte, held int64, err error) {
	b, held, err = s.room.Body(w, r, s.o.MaxBody, s.o.Patience)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, fmt.Sprintf("a body of more than %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
	case errors.Is(err, bodylimit.ErrFull):
		http.Error(w, err.Error()+": nothing was changed", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, "the body did not arrive", http.StatusBadRequest)
	}
	return b, held, err
}

// Serve answers on a listener until the context ends, and then finishes the requests that have
// begun, for at most Patience.
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
		err = h.Close() // requests that take longer are cut off
	}
	<-served // http.ErrServerClosed
	return err
}

// limitedListener is a listener that closes connections beyond a number at once: what is refused
// costs no memory.
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
