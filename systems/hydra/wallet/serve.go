package wallet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	// grace is what requests have to end when the process does.
	grace = 10 * time.Second
)

// Serve serves on a listener, and by further names, until ctx ends; what was begun is ended then.
func Serve(ctx context.Context, l net.Listener, s *Server, hosts ...string) error {
	s.guard(l.Addr(), hosts)
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the wallet: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = fmt.Errorf("ending the wallet's requests: %w", err)
	}
	<-ended // http.ErrServerClosed, which Shutdown asked for
	return err
}
