package balancer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

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
