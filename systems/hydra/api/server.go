package api

import (
	"context"
	"crypto/tls"
	_ "embed" // the document
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/internal/base/bodylimit"
	"skerry/internal/base/webguard"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/framing"
)

// OpenAPI is the document that /openapi.yaml serves.
//
//go:embed openapi.yaml
var OpenAPI []byte

const (
	// MaxBody bounds a request's body in bytes.
	MaxBody = 4 << 20
	// forwardedMore is the extra size of a forwarded transaction: its JSON includes path, headers and frame of the request.
	forwardedMore = 1 << 20
	// DefaultInFlight is the maximum of concurrent requests; others get 503 with Retry-After.
	DefaultInFlight = 4096
	DefaultTimeout  = 10 * time.Second
	// DefaultPatience bounds the arrival of a request.
	DefaultPatience = 30 * time.Second
	// MaxScan bounds the rows of a page; DefaultScan is the default.
	MaxScan     = 10_000
	DefaultScan = 100
	// MaxScanBytes ends a page after the row that exceeds it.
	MaxScanBytes = 4 << 20

	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Config configures a Server.
type Config struct {
	Backend Backend
	Member  string // name in the headers of answers
	// Guard rejects web pages of other sites; nil guards a server on loopback.
	Guard *webguard.Guard
	// Tokens, if set, are required for requests that are not public.
	Tokens *bearer.Tokens
	// InFlight and Timeout default to DefaultInFlight and DefaultTimeout.
	InFlight int64
	Timeout  time.Duration
	// Bodies bounds all bodies in bytes (0: bodylimit's default), Patience the arrival of one (0: DefaultPatience).
	Bodies   int64
	Patience time.Duration
	// Registry gets the server's metrics and is served at /metrics.
	Registry *prometheus.Registry
	// Forward sends requests to other members, with https if ForwardTLS.
	Forward    http.RoundTripper
	ForwardTLS bool
	Log        *slog.Logger
}

// Server serves Hydra's HTTP interface.
type Server struct {
	Config
	mux      *http.ServeMux
	guarded  http.Handler
	room     *bodylimit.Budget
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	shed     prometheus.Counter
	inFlight atomic.Int64
	draining atomic.Bool
	streams  streams
}

func New(c Config) *Server {
	if c.InFlight == 0 {
		c.InFlight = DefaultInFlight
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	if c.Guard == nil {
		c.Guard = webguard.New(nil)
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Config: c, mux: http.NewServeMux(), room: bodylimit.NewBudget(c.Bodies)}
	s.streams.init()
	s.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hydra_requests_total", Help: "Requests by route and status."}, []string{"route", "code"})
	s.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hydra_request_seconds", Help: "Duration of requests.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 17)}, []string{"route"})
	s.shed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "hydra_requests_shed_total", Help: "Requests rejected with 503 because of too many requests in flight."})
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hydra_requests_in_flight", Help: "Requests being served."}, func() float64 { return float64(s.inFlight.Load()) })
	c.Registry.MustRegister(s.requests, s.seconds, s.shed, gauge)
	s.streams.registerMetrics(s)
	for _, r := range s.routes() {
		s.mux.Handle(r.method+" "+r.path, s.wrap(r))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.writeProblem(w, Problemf(CodeBadRequest, "no route %s %s", r.Method, r.URL.Path))
	})
	s.guarded = c.Guard.Protect(s.mux, func(w http.ResponseWriter, err error) { s.writeProblem(w, GuardProblem(err)) })
	return s
}

// GuardProblem converts a guard's error into a problem.
func GuardProblem(err error) *Problem {
	code := CodeForbidden
	if errors.Is(err, webguard.ErrHost) {
		code = CodeForeignHost
	}
	return &Problem{Code: code, Message: err.Error(), Advice: advice.Of(err)}
}

type route struct {
	method, path string
	scope        bearer.Scope
	serve        func(http.ResponseWriter, *http.Request) error
	unbounded    bool
}

func (s *Server) routes() []route {
	const rows = "/v1/tables/{table}/rows"
	return []route{
		{"GET", "/v1/tables", bearer.Read, s.listTables, false},
		{"PUT", "/v1/tables/{table}", bearer.Write, s.changeTable(command.CreateTable), false},
		{"DELETE", "/v1/tables/{table}", bearer.Write, s.changeTable(command.DropTable), false},
		{"POST", "/v1/tables/{table}/clear", bearer.Write, s.changeTable(command.ClearTable), false},
		{"GET", "/v1/tables/{table}/count", bearer.Read, s.count, false},
		{"GET", rows, bearer.Read, s.scan, false},
		{"GET", rows + "/{key}", bearer.Read, s.get, false},
		{"PUT", rows + "/{key}", bearer.Write, s.put, false},
		{"PATCH", rows + "/{key}", bearer.Write, s.merge, false},
		{"DELETE", rows + "/{key}", bearer.Write, s.remove, false},
		{"POST", "/v1/transactions", bearer.Write, s.transact, false},
		{"GET", "/v1/members", bearer.Read, s.members, false},
		{"POST", "/v1/members", bearer.Admin, s.addMember, false},
		{"DELETE", "/v1/members/{id}", bearer.Admin, s.removeMember, false},
		{"POST", "/v1/leader", bearer.Admin, s.transfer, false},
		{"GET", "/v1/progress", bearer.Read, s.progress, false},
		{"GET", "/v1/snapshot", bearer.Admin, s.snapshot, true},
		{"GET", framing.Path, bearer.Read, s.stream, true},
		{"GET", "/status", bearer.Read, s.status, false},
		{"GET", "/metrics", bearer.Read, s.metrics, false},
		{"GET", "/healthz", bearer.Public, s.healthy, false},
		{"GET", "/readyz", bearer.Public, s.ready, false},
		{"GET", "/openapi.yaml", bearer.Public, s.openapi, false},
	}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.guarded.ServeHTTP(w, r) }

// wrap adds authorization, arrival of the body, limit of requests, timeout, metrics and error answers to a route.
func (s *Server) wrap(rt route) http.Handler {
	name := rt.method + " " + rt.path
	seconds, ok := s.seconds.WithLabelValues(name), s.requests.WithLabelValues(name, "200")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.authorize(rt, r)
		if err == nil {
			var held int64
			held, err = s.receiveBody(w, r)
			defer s.room.Release(held)
		}
		if err == nil && r.URL.RawQuery != "" {
			if r.Form, err = url.ParseQuery(r.URL.RawQuery); err != nil {
				err = Problemf(CodeBadRequest, "the query: %v", err)
			}
		}
		began := time.Now()
		if rt.unbounded {
			// The request has arrived, so its read deadline ends. An error means that there is none.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		} else {
			ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		if err == nil {
			err = s.serveLimited(rt, w, r)
		}
		seconds.Observe(time.Since(began).Seconds())
		if err == nil {
			ok.Inc()
			return
		}
		s.requests.WithLabelValues(name, strconv.Itoa(s.writeError(w, r, err))).Inc()
	})
}

func (s *Server) serveLimited(rt route, w http.ResponseWriter, r *http.Request) error {
	if rt.scope != bearer.Public {
		defer s.inFlight.Add(-1)
		if s.inFlight.Add(1) > s.InFlight {
			s.shed.Inc()
			return Problemf(CodeOverloaded, "%d requests are in flight", s.InFlight)
		}
	}
	w.Header()[HeaderMember] = []string{s.Member}
	return rt.serve(w, r)
}

// Held returns the bytes that request bodies hold.
func (s *Server) Held() int64 { return s.room.InUse() }

func (s *Server) authorize(rt route, r *http.Request) error {
	if s.Tokens == nil || rt.scope == bearer.Public {
		return nil
	}
	switch have := s.Tokens.Scope(r.Header.Get("Authorization")); {
	case have == bearer.Public:
		return &Problem{Code: CodeUnauthorized, Message: "no valid bearer token",
			Advice: "send Authorization: Bearer TOKEN with one of the member's tokens"}
	case have < rt.scope:
		return Problemf(CodeForbidden, "the token allows to %v, this needs one that allows to %v", have, rt.scope)
	}
	return nil
}

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) int {
	var elsewhere *Elsewhere
	if errors.As(err, &elsewhere) {
		if r.Header.Get(HeaderForwarded) == "" && s.Forward != nil {
			return s.forwardRequest(w, r, elsewhere)
		}
		return s.writeProblem(w, Problemf(CodeUnavailable, "%v", elsewhere.Why))
	}
	return s.writeProblem(w, s.problemOf(err, r.Method != http.MethodGet, r.Method+" "+r.URL.Path))
}

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

// Drain makes /readyz fail; requests are still served.
func (s *Server) Drain() { s.draining.Store(true) }

func (s *Server) Draining() bool { return s.draining.Load() }

// HTTP returns an HTTP server, with TLS if config is set.
func (s *Server) HTTP(config *tls.Config) *http.Server {
	h := &http.Server{
		Handler: s, TLSConfig: config, ReadHeaderTimeout: headerTimeout, ReadTimeout: s.Patience + s.Timeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	h.RegisterOnShutdown(s.streams.drain)
	return h
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}
