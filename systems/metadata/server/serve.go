package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"skerry/internal/base/webguard"
)

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
