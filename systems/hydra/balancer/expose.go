package balancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/base/webguard"
)

// WithMetrics serves a registry at addr/metrics, and by further names, while run runs.
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
