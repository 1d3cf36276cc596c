package api

import (
	"context"
	"crypto/tls"
	_ "embed" // the document
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/internal/base/bodylimit"
	"skerry/internal/base/webguard"
	"skerry/systems/hydra/framing"
)

// OpenAPI is the document that /openapi.yaml serves.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Limits of what a server takes.
const (
	// MaxBody is the most bytes of a request's body.
	MaxBody = 4 << 20
	// forwardedMore is how much longer a transaction may be that another member passes on: what
	// came as a path, a header or a frame stands in its JSON.
	forwardedMore = 1 << 20
	// DefaultInFlight is how many requests are served at a time; more are answered with
	// 503 and Retry-After at once.
	DefaultInFlight = 4096
	// DefaultTimeout bounds an operation.
	DefaultTimeout = 10 * time.Second
	// DefaultPatience bounds the arrival of a request.
	DefaultPatience = 30 * time.Second
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
	// Guard keeps web pages of other sites away; nil for one of a server on loopback.
	Guard *webguard.Guard
	// Tokens, when set, are asked of every request that is not public.
	Tokens *bearer.Tokens
	// InFlight and Timeout are DefaultInFlight and DefaultTimeout when 0.
	InFlight int64
	Timeout  time.Duration
	// Bodies is what the bodies of all requests hold together, in bytes (intake.DefaultRoom when
	// 0), Patience how long one may take to arrive (DefaultPatience when 0).
	Bodies   int64
	Patience time.Duration
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
	guarded  http.Handler
	room     *bodylimit.Room
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
	s := &Server{Config: c, mux: http.NewServeMux(), room: bodylimit.NewRoom(c.Bodies)}
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
	s.streams.registerMetrics(s)
	for _, r := range s.routes() {
		s.mux.Handle(r.method+" "+r.path, s.wrap(r))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.writeProblem(w, Problemf(CodeBadRequest, "there is no %s %s", r.Method, r.URL.Path))
	})
	s.guarded = c.Guard.Protect(s.mux, func(w http.ResponseWriter, err error) { s.writeProblem(w, GuardProblem(err)) })
	return s
}

// GuardProblem is the problem of a request that a guard refuses.
func GuardProblem(err error) *Problem {
	code := CodeForbidden
	if errors.Is(err, webguard.ErrHost) {
		code = CodeForeignHost
	}
	return &Problem{Code: code, Message: err.Error(), Advice: advice.Of(err)}
}

// route is one method of one path.
type route struct {
	method, path string
	scope        bearer.Scope
	serve        func(http.ResponseWriter, *http.Request) error
	// unbounded says that the operation may take as long as it takes.
	unbounded bool
}

func (s *Server) routes() []route {
	const rows = "/v1/tables/{table}/rows"
	return []route{
		{"GET", "/v1/tables", bearer.Read, s.listTables, false},
		{"PUT", "/v1/tables/{table}", bearer.Write, s.createTable, false},
		{"DELETE", "/v1/tables/{table}", bearer.Write, s.dropTable, false},
		{"POST", "/v1/tables/{table}/clear", bearer.Write, s.clearTable, false},
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

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.guarded.ServeHTTP(w, r) }

// wrap is what every route has around it: the token, the arrival of the whole request, the bound
// on requests in flight, the time, the metrics, and the answer to an error.
func (s *Server) wrap(rt route) http.Handler {
	name := rt.method + " " + rt.path
	seconds, ok := s.seconds.WithLabelValues(name), s.requests.WithLabelValues(name, "200")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.authorize(rt, r)
		if err == nil {
			var held int64
			held, err = s.receiveBody(w, r)
			defer s.room.Give(held)
		}
		began := time.Now()
		if rt.unbounded {
			// It may outlast the time for a request's arrival, which has come. Where there is no
			// deadline to be set, there is none.
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

// serveLimited serves a request that is whole, where not too many are being served.
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

// Held is what the bodies of requests hold, in bytes.
func (s *Server) Held() int64 { return s.room.Held() }

// authorize asks for the token that a route needs.
func (s *Server) authorize(rt route, r *http.Request) error {
	if s.Tokens == nil || rt.scope == bearer.Public {
		return nil
	}
	switch have := s.Tokens.Scope(r.Header.Get("Authorization")); {
	case have == bearer.Public:
		return &Problem{Code: CodeUnauthorized, Message: "no valid bearer token", Advice: "send Authorization: Bearer TOKEN with one of the member's tokens"}
	case have < rt.scope:
		return Problemf(CodeForbidden, "the token allows to %v, this needs one that allows to %v", have, rt.scope)
	}
	return nil
}

// writeError answers with an error, or has another member answer, and returns the status.
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

// HTTP is an HTTP server of it; config, when set, makes it https. What is refused unread may not
// stall either.
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
