// Package balancer is the load balancer that stands in front of Hydra in each cloud: it
// spreads requests over the members of the data layer and over the application's
// processes, its own cloud's first, and answers every one of them.
//
//	request ─► Pool: limit, queue ──full──► 503, Retry-After
//	              │ order: for a write the leader, if near; then by distance x load
//	              ▼
//	           backend ──not done, or harmless to repeat──► the next, until patience ends
//	              │
//	              ▼
//	           answer            checks of /status tell who is healthy, near, leader
//
// What it repeats is what cannot be done twice by that: reads, writes with an idempotency
// key, requests that never left, and those whose answer says that they were certainly not
// done. Any other write whose connection broke is answered as in doubt.
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry/internal/base/advice"
	"skerry/internal/base/bodylimit"
	"skerry/internal/base/dialtls"
)

// ErrConfig says that a balancer was asked for that cannot be.
var ErrConfig = errors.New("invalid load balancer")

// Kind is what backends are.
type Kind string

// Kinds of backends.
const (
	// Members serve the data layer's API; their /status tells leader and health.
	Members Kind = "members"
	// Apps are processes of the application; their /healthz tells their health.
	Apps Kind = "apps"
)

// Backend is a server behind the balancer.
type Backend struct {
	URL   string // http://10.0.0.1:7070
	Cloud string
}

// Config of a balancer. Zeros are the defaults of Defaults.
type Config struct {
	// Name tells balancers apart in answers and metrics; Cloud is where this one stands.
	Name, Cloud string
	Members     []Backend
	Apps        []Backend
	// Near is how far away a leader may be for writes to go straight to it. Writes to one
	// that is farther go to a follower here, which passes them on over connections that
	// it keeps.
	Near time.Duration
	// Limit is how many requests of a pool are with backends at once, Queue how many more
	// wait, and QueueTime for how long at most.
	Limit, Queue int
	QueueTime    time.Duration
	// Try bounds an attempt that may be repeated, Timeout a request with all its attempts.
	Try, Timeout time.Duration
	// Patience is for how long what is safe to repeat is repeated while no backend takes it.
	Patience time.Duration
	// MaxBody bounds the body of a request, MaxBodies those of all (0: intake.DefaultRoom), in bytes;
	// Arrival is how long a request may take to arrive.
	MaxBody, MaxBodies int64
	Arrival            time.Duration
	// Interval and CheckTimeout of the checks; Fall and Rise are how many in a row decide.
	Interval, CheckTimeout time.Duration
	Fall, Rise             int
	// Drain is for how long a balancer that was told to end says that it is not ready, and
	// goes on serving, so that the DNS stops naming it first; Grace is what requests then
	// have to end.
	Drain, Grace time.Duration
	// Hosts are further names that it answers to; addresses that it is reached by are known.
	Hosts []string
	// Token is sent along with checks; that of a request is the client's own.
	Token string
	// TLS is how it talks to backends whose URL is https; Front what it shows to clients,
	// nil for plain HTTP.
	TLS   func() *tls.Config
	Front *tls.Config
	Log   *slog.Logger
	// Registry, when set, gets the metrics, and /-/metrics serves Gatherer.
	Registry prometheus.Registerer
	Gatherer prometheus.Gatherer
}

// Defaults are what a balancer has that is told no other.
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
	room    *bodylimit.Room
	state   state
}

// New makes a balancer, which serves by Run.
func New(c Config) (*Balancer, error) {
	if len(c.Members)+len(c.Apps) == 0 {
		return nil, advice.With(fmt.Errorf("%w: there is nothing behind it", ErrConfig), "name backends with --member CLOUD=URL and --app CLOUD=URL")
	}
	if c.Limit < 1 || c.Queue < 0 || c.Fall < 1 || c.Rise < 1 || c.Interval <= 0 || c.CheckTimeout <= 0 || c.Timeout <= 0 || c.Try <= 0 {
		return nil, fmt.Errorf("%w: limit, fall, rise, interval and timeouts are greater than 0", ErrConfig)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	b := &Balancer{config: c, metrics: newMetrics(), room: bodylimit.NewRoom(c.MaxBodies)}
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

// pool is the backends of a kind.
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
		DialContext: dialer(c.CheckTimeout), DialTLSContext: dialtls.Context(dialer(c.CheckTimeout), c.TLS), DisableCompression: true,
		ResponseHeaderTimeout: c.Timeout,
	}}
	seen := map[string]bool{}
	for _, g := range given {
		u, err := url.Parse(g.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" {
			return nil, advice.With(fmt.Errorf("%w: %q is not where a backend is", ErrConfig, g.URL), "give it as http://HOST:PORT")
		}
		if seen[u.Host] {
			return nil, fmt.Errorf("%w: %s is there twice", ErrConfig, u.Host)
		}
		seen[u.Host] = true
		p.backends = append(p.backends, &backend{url: u, cloud: g.Cloud, local: g.Cloud == c.Cloud})
	}
	return p, nil
}

// state is where a balancer is in its life.
type state struct{ draining atomic.Bool }

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Run serves on a listener until ctx ends, and drains then: it says that it is not ready
// but goes on, then ends what it has begun, and returns. It takes the first requests when
// every backend was checked once.
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
		Handler: guarded, ReadHeaderTimeout: headerTimeout, ReadTimeout: b.config.Arrival + b.config.QueueTime + b.config.Timeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(b.config.Log.Handler(), slog.LevelDebug),
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
	time.Sleep(b.config.Drain) // nothing tells when the last resolver has forgotten this balancer
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.Grace)
	defer cancel()
	err := server.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("ending requests that take longer than %v: %w", b.config.Grace, err), server.Close())
	}
	<-ended // http.ErrServerClosed, which Shutdown asked for
	return err
}
