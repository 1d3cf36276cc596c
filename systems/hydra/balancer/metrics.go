package balancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/base/webguard"
)

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
