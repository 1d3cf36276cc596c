package api

import (
	"context"
	"crypto/tls"
	_ "embed" // the document
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/hydra/wire"
)

// OpenAPI is the document that /openapi.yaml serves.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Limits of what a server takes.
const (
	// MaxBody is the most bytes of a request's body.
	MaxBody = 4 << 20
	// DefaultInFlight is how many requests are served at a time; more are answered with
	// 503 and Retry-After at once.
	DefaultInFlight = 4096
	// DefaultTimeout bounds an operation.
	DefaultTimeout = 10 * time.Second
	// MaxScan is the most rows of a page, DefaultScan what it has when nothing is said.
	MaxScan     = 10_000
	DefaultScan = 100
	// MaxScanBytes ends a page early: values of so many bytes and one more row.
	MaxScanBytes = 4 << 20

	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Config is what a server needs.
type Config struct {
	Backend Backend
	Member  string // for the headers of answers
	// Tokens, when set, are asked of every request that is not public.
	Tokens *Tokens
	// InFlight and Timeout are DefaultInFlight and DefaultTimeout when 0.
	InFlight int64
	Timeout  time.Duration
	// Registry takes the server's metrics, and /metrics shows all of it.
	Registry *prometheus.Registry
	// Forward is used to pass requests on to other members.
	Forward http.RoundTripper
	// ForwardTLS says that other members' interfaces are https.
	ForwardTLS bool
	Log        *slog.Logger
}

// Server is Hydra's interface.
type Server struct {
	Config
	mux      *http.ServeMux
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	shed     prometheus.Counter
	inFlight atomic.Int64
	draining atomic.Bool
	streams  streams
}

// New makes a server.
func New(c Config) *Server {
	if c.InFlight == 0 {
		c.InFlight = DefaultInFlight
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Config: c, mux: http.NewServeMux()}
	s.streams.init()
	s.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hydra_requests_total", Help: "Requests by route and status."}, []string{"route", "code"})
	s.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hydra_request_seconds", Help: "Time that requests took.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 17)}, []string{"route"})
	s.shed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "hydra_requests_shed_total", Help: "Requests that were answered with 503 since too many were in flight."})
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hydra_requests_in_flight", Help: "Requests that are being served."}, func() float64 { return float64(s.inFlight.Load()) })
	c.Registry.MustRegister(s.requests, s.seconds, s.shed, gauge)
	s.streams.measure(s)
	for _, r := range s.routes() {
		s.mux.Handle(r.method+" "+r.path, s.wrap(r))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, Problemf(CodeBadRequest, "there is no %s %s", r.Method, r.URL.Path))
	})
	return s
}

// route is one method of one path.
type route struct {
	method, path string
	scope        Scope
	serve        func(http.ResponseWriter, *http.Request) error
	// unbounded says that the operation may take as long as it takes.
	unbounded bool
}

func (s *Server) routes() []route {
	const rows = "/v1/tables/{table}/rows"
	return []route{
		{"GET", "/v1/tables", ScopeRead, s.listTables, false},
		{"PUT", "/v1/tables/{table}", ScopeWrite, s.createTable, false},
		{"DELETE", "/v1/tables/{table}", ScopeWrite, s.dropTable, false},
		{"POST", "/v1/tables/{table}/clear", ScopeWrite, s.clearTable, false},
		{"GET", "/v1/tables/{table}/count", ScopeRead, s.count, false},
		{"GET", rows, ScopeRead, s.scan, false},
		{"GET", rows + "/{key}", ScopeRead, s.get, false},
		{"PUT", rows + "/{key}", ScopeWrite, s.put, false},
		{"PATCH", rows + "/{key}", ScopeWrite, s.merge, false},
		{"DELETE", rows + "/{key}", ScopeWrite, s.remove, false},
		{"POST", "/v1/transactions", ScopeWrite, s.transact, false},
		{"GET", "/v1/members", ScopeRead, s.members, false},
		{"POST", "/v1/members", ScopeAdmin, s.addMember, false},
		{"DELETE", "/v1/members/{id}", ScopeAdmin, s.removeMember, false},
		{"POST", "/v1/leader", ScopeAdmin, s.transfer, false},
		{"GET", "/v1/progress", ScopeRead, s.progress, false},
		{"GET", "/v1/snapshot", ScopeAdmin, s.snapshot, true},
		{"GET", wire.Path, ScopeRead, s.stream, true},
		{"GET", "/status", ScopeRead, s.status, false},
		{"GET", "/metrics", ScopeRead, s.metrics, false},
		{"GET", "/healthz", ScopePublic, s.healthy, false},
		{"GET", "/readyz", ScopePublic, s.ready, false},
		{"GET", "/openapi.yaml", ScopePublic, s.openapi, false},
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// wrap is what every route has around it: the bound on requests in flight, the token, the
// time, the metrics, and the answer to an error.
func (s *Server) wrap(rt route) http.Handler {
	name := rt.method + " " + rt.path
	seconds, ok := s.seconds.WithLabelValues(name), s.requests.WithLabelValues(name, "200")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rt.scope != ScopePublic {
			defer s.inFlight.Add(-1)
			if s.inFlight.Add(1) > s.InFlight {
				s.shed.Inc()
				s.refuse(w, Problemf(CodeOverloaded, "%d requests are in flight", s.InFlight))
				return
			}
		}
		began := time.Now()
		if !rt.unbounded {
			ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		err := s.permit(rt, r)
		if err == nil {
			w.Header()[HeaderMember] = []string{s.Member}
			err = rt.serve(w, r)
		}
		seconds.Observe(time.Since(began).Seconds())
		if err == nil {
			ok.Inc()
			return
		}
		s.requests.WithLabelValues(name, strconv.Itoa(s.fail(w, r, err))).Inc()
	})
}

// permit asks for the token that a route needs.
func (s *Server) permit(rt route, r *http.Request) error {
	if s.Tokens == nil || rt.scope == ScopePublic {
		return nil
	}
	switch have := s.Tokens.scope(r.Header.Get("Authorization")); {
	case have == ScopePublic:
		return &Problem{Code: CodeUnauthorized, Message: "no valid bearer token", Advice: "send Authorization: Bearer TOKEN with one of the member's tokens"}
	case have < rt.scope:
		return Problemf(CodeForbidden, "the token allows to %v, this needs one that allows to %v", have, rt.scope)
	}
	return nil
}

// fail answers with an error, or has another member answer, and returns the status.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) int {
	var elsewhere *Elsewhere
	if errors.As(err, &elsewhere) {
		if r.Header.Get(HeaderForwarded) == "" && s.Forward != nil {
			return s.forward(w, r, elsewhere)
		}
		return s.refuse(w, Problemf(CodeUnavailable, "%v", elsewhere.Why))
	}
	return s.refuse(w, s.problemOf(err, r.Method != http.MethodGet, r.Method+" "+r.URL.Path))
}

// problemOf is what a client is told of an error; the member's own faults are logged.
func (s *Server) problemOf(err error, write bool, what string) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return Problemf(CodeTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		code := CodeUnavailable
		if write {
			code = CodeInDoubt
		}
		return Problemf(code, "not answered in time: %v", err)
	}
	s.Log.Error("a request failed", "request", what, "error", err)
	return Problemf(CodeInternal, "%v", err)
}

// Drain has /readyz say no, so that balancers send nothing more; what comes is served.
func (s *Server) Drain() { s.draining.Store(true) }

// Draining tells whether Drain was called.
func (s *Server) Draining() bool { return s.draining.Load() }

// HTTP is an HTTP server of it; config, when set, makes it https.
func (s *Server) HTTP(config *tls.Config) *http.Server {
	h := &http.Server{
		Handler: s, TLSConfig: config, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	h.RegisterOnShutdown(s.streams.end)
	return h
}

// ErrExposed says that a listener would be open to others without TLS and tokens.
var ErrExposed = errors.New("refusing to listen beyond this machine without TLS and tokens")

// CheckExposure refuses an address that is not loopback's unless it is protected.
func CheckExposure(addr string, tls, tokens bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q is not host:port: %w", addr, err)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || tls && tokens {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrExposed, addr)
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}
