// Package balancer is the load balancer in front of Hydra in each cloud. It spreads requests over the members and over
// the application's processes, its own cloud's first, and answers every request.
//
//	request ─► Pool: limit, queue ──full──► 503, Retry-After
//	              │ order: for a write the leader, if near; then by distance x load
//	              ▼
//	           backend ──not done, or harmless to repeat──► the next, until patience ends
//	              │
//	              ▼
//	           answer            checks of /status tell who is healthy, near, leader
//
// It repeats only requests that cannot be executed twice: reads, writes with an idempotency
// key, requests that were never sent, and requests whose answer says that they were not
// executed. Any other write with a broken connection is answered as in doubt.
package balancer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/base/advice"
	"skerry/internal/base/bodylimit"
	"skerry/internal/base/dialtls"
	"skerry/internal/base/webguard"
)

var ErrConfig = errors.New("invalid load balancer")

// Kind is the kind of a pool's backends.
type Kind string

const (
	// Members serve the data layer's API; /status reports leader and health.
	Members Kind = "members"
	// Apps are processes of the application; /healthz reports health.
	Apps Kind = "apps"
)

// Backend is a server behind the balancer.
type Backend struct {
	URL   string // http://10.0.0.1:7070
	Cloud string
}

// Config configures a balancer; Defaults has the defaults.
type Config struct {
	// Name identifies the balancer in answers and metrics.
	Name, Cloud string
	Members     []Backend
	Apps        []Backend
	// Near is the maximum distance of a leader that gets writes directly. A local follower forwards the others.
	Near time.Duration
	// Limit is a pool's maximum of concurrent requests; Queue and QueueTime bound the waiting ones.
	Limit, Queue int
	QueueTime    time.Duration
	// Try bounds one attempt of a repeatable request, Timeout all attempts of a request.
	Try, Timeout time.Duration
	// Patience is how long a repeatable request is repeated while no backend accepts it.
	Patience time.Duration
	// MaxBody bounds a body, MaxBodies all bodies (0: bodylimit's default), in bytes; Arrival the arrival of a request.
	MaxBody, MaxBodies int64
	Arrival            time.Duration
	// Interval and CheckTimeout configure checks. Fall and Rise consecutive checks change a backend's state.
	Interval, CheckTimeout time.Duration
	Fall, Rise             int
	// Drain is how long a stopping balancer serves but reports not ready, for DNS. Grace is how long requests may then take.
	Drain, Grace time.Duration
	// Hosts are additional host names that the balancer accepts.
	Hosts []string
	// Token is sent with checks; requests carry the client's token.
	Token string
	// TLS is used for https backends; Front is the server side, nil for plain HTTP.
	TLS   func() *tls.Config
	Front *tls.Config
	Log   *slog.Logger
	// Registry, if set, gets the metrics; /-/metrics serves Gatherer.
	Registry prometheus.Registerer
	Gatherer prometheus.Gatherer
}

func Defaults() Config {
	return Config{
		Near: 10 * time.Millisecond, Limit: 256, Queue: 4096, QueueTime: 10 * time.Second,
		Try: 3 * time.Second, Timeout: 30 * time.Second, Patience: 10 * time.Second, MaxBody: 8 << 20, Arrival: 30 * time.Second,
		Interval: 250 * time.Millisecond, CheckTimeout: time.Second, Fall: 2, Rise: 1,
		Drain: 2 * time.Second, Grace: 15 * time.Second,
	}
}

// Balancer is a load balancer.
type Balancer struct {
	config  Config
	pools   []*pool
	members *pool // nil without
	apps    *pool // nil without
	metrics *metrics
	room    *bodylimit.Budget
	state   state
}

// New returns a balancer; call Run to serve.
func New(c Config) (*Balancer, error) {
	if len(c.Members)+len(c.Apps) == 0 {
		return nil, advice.With(fmt.Errorf("%w: no --member or --app given", ErrConfig),
			"name backends with --member CLOUD=URL and --app CLOUD=URL")
	}
	if c.Limit < 1 || c.Queue < 0 || c.Fall < 1 || c.Rise < 1 || c.Interval <= 0 || c.CheckTimeout <= 0 || c.Timeout <= 0 || c.Try <= 0 {
		return nil, fmt.Errorf("%w: limit, fall, rise, interval and timeouts are greater than 0", ErrConfig)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	b := &Balancer{config: c, metrics: newMetrics(), room: bodylimit.NewBudget(c.MaxBodies)}
	for _, p := range []struct {
		kind     Kind
		backends []Backend
		at       **pool
	}{{Members, c.Members, &b.members}, {Apps, c.Apps, &b.apps}} {
		if len(p.backends) == 0 {
			continue
		}
		made, err := b.newPool(p.kind, p.backends)
		if err != nil {
			return nil, err
		}
		*p.at = made
		b.pools = append(b.pools, made)
	}
	return b, b.metrics.register(c.Registry, b.pools)
}

type pool struct {
	*Balancer
	kind     Kind
	backends []*backend
	limit    *limiter
	client   *http.Transport
}

func (b *Balancer) newPool(kind Kind, given []Backend) (*pool, error) {
	c := b.config
	p := &pool{Balancer: b, kind: kind, limit: newLimiter(c.Limit, c.Queue, c.QueueTime), client: &http.Transport{
		MaxIdleConnsPerHost: c.Limit, MaxIdleConns: 4 * c.Limit, IdleConnTimeout: time.Minute,
		DialContext: dialer(c.CheckTimeout), DialTLSContext: dialtls.DialContext(dialer(c.CheckTimeout), c.TLS), DisableCompression: true,
		ResponseHeaderTimeout: c.Timeout,
	}}
	seen := map[string]bool{}
	for _, g := range given {
		u, err := url.Parse(g.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" {
			return nil, advice.With(fmt.Errorf("%w: %q is not a backend URL", ErrConfig, g.URL), "use http://HOST:PORT")
		}
		if seen[u.Host] {
			return nil, fmt.Errorf("%w: backend %s is listed twice", ErrConfig, u.Host)
		}
		seen[u.Host] = true
		p.backends = append(p.backends, &backend{url: u, cloud: g.Cloud, local: g.Cloud == c.Cloud})
	}
	return p, nil
}

type state struct{ draining atomic.Bool }

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Run serves on l until ctx ends. It accepts requests after every backend was checked once. At the end
// it drains: it reports not ready while serving, then waits for requests in progress.
func (b *Balancer) Run(ctx context.Context, l net.Listener) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all, first sync.WaitGroup
	for _, p := range b.pools {
		for _, x := range p.backends {
			first.Add(1)
			all.Go(func() { p.watch(watching, x, sync.OnceFunc(first.Done)) })
		}
	}
	defer func() {
		stop()
		all.Wait()
		for _, p := range b.pools {
			p.client.CloseIdleConnections()
		}
	}()
	first.Wait()

	guarded := b.guarded(l.Addr())
	if b.config.Front != nil {
		l = tls.NewListener(l, b.config.Front)
	}
	server := &http.Server{
		Handler: guarded, ReadHeaderTimeout: headerTimeout, ReadTimeout: b.config.Arrival + b.config.QueueTime + b.config.Timeout,
		IdleTimeout: idleTimeout,
		ErrorLog:    slog.NewLogLogger(b.config.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	b.config.Log.Info("draining", "for", b.config.Drain)
	b.state.draining.Store(true)
	time.Sleep(b.config.Drain) // resolvers may cache this balancer's address
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.Grace)
	defer cancel()
	err := server.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("waiting %v for requests in progress: %w", b.config.Grace, err), server.Close())
	}
	<-ended // http.ErrServerClosed, which Shutdown asked for
	return err
}

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	retries  *prometheus.CounterVec
	shed     *prometheus.CounterVec
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		requests: counter("hydra_lb_requests_total", "Requests answered, by kind of backend and status code.", "kind", "code"),
		retries:  counter("hydra_lb_retries_total", "Attempts that were repeated at another backend.", "kind"),
		shed:     counter("hydra_lb_shed_total", "Requests rejected with 503 because of too many requests.", "kind"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hydra_lb_request_seconds", Help: "Time from a request to its answer, including queueing and retries.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"kind", "method"}),
	}
}

func (m *metrics) recordRequest(kind Kind, method string, code int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete:
	default:
		method = "other" // bounds the number of labels
	}
	m.requests.WithLabelValues(string(kind), strconv.Itoa(code)).Inc()
	m.seconds.WithLabelValues(string(kind), method).Observe(took.Seconds())
}

func (m *metrics) register(r prometheus.Registerer, pools []*pool) error {
	if r == nil {
		return nil
	}
	all := []prometheus.Collector{m.requests, m.seconds, m.retries, m.shed}
	gauge := func(name, help string, labels prometheus.Labels, value func() float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
	}
	for _, p := range pools {
		kind := prometheus.Labels{"kind": string(p.kind)}
		gauge("hydra_lb_queued", "Queued requests.", kind, func() float64 { return float64(p.limit.waiting.Load()) })
		gauge("hydra_lb_in_flight", "Requests being served by backends.", kind, func() float64 { return float64(len(p.limit.slots)) })
		for _, b := range p.backends {
			labels := prometheus.Labels{"kind": string(p.kind), "backend": b.url.Host, "cloud": b.cloud}
			gauge("hydra_lb_backend_usable", "1 if a backend gets requests.", labels, func() float64 {
				if b.currentView().usable() {
					return 1
				}
				return 0
			})
			gauge("hydra_lb_backend_distance_seconds", "Moving average of a check's duration.", labels,
				func() float64 { return b.currentView().distance.Seconds() })
		}
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// WithMetrics serves from at addr/metrics, under additional host names, while run runs.
func WithMetrics(ctx context.Context, addr string, hosts []string, from prometheus.Gatherer, run func(context.Context) error) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listening for metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{}))
	guard := webguard.New(l.Addr(), append(hosts, addr)...)
	server := &http.Server{Handler: guard.Protect(mux, nil), ReadHeaderTimeout: headerTimeout}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	err = errors.Join(run(ctx), server.Close())
	<-ended // http.ErrServerClosed
	return err
}
