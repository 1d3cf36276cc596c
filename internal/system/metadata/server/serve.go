package server

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"skerry/internal/base/webguard"
)

// Serve answers on a listener until the context ends, and then finishes what it began.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.guard = webguard.New(l.Addr(), s.o.Hosts...)
	h := &http.Server{
		Handler: s, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: s.o.Patience, ReadTimeout: s.o.Patience, WriteTimeout: s.o.Patience, IdleTimeout: s.o.Idle,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	elsewhere := &handover{conns: make(chan net.Conn), done: make(chan struct{}), addr: l.Addr()}
	served := make(chan error, 1)
	go func() { served <- h.Serve(elsewhere) }()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	own := &open{conns: make(map[*conn]struct{})}
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close() // Accept tells
		own.hurry()
	})
	defer stop()
	err := s.accept(ctx, l, own, elsewhere)
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	own.wait()
	finish, end := context.WithTimeout(context.WithoutCancel(ctx), s.o.Patience)
	defer end()
	ending := h.Shutdown(finish)
	if errors.Is(ending, context.DeadlineExceeded) {
		ending = h.Close() // who takes longer than that is not waited for
	}
	err = errors.Join(err, ending)
	if e := <-served; !errors.Is(e, http.ErrServerClosed) && !errors.Is(e, net.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// accept takes connections until the listener is closed.
func (s *Server) accept(ctx context.Context, l net.Listener, own *open, elsewhere *handover) error {
	incoming := &bounded{Listener: l, s: s}
	for {
		accepted, err := incoming.Accept()
		if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
			continue
		}
		if err != nil {
			return err
		}
		c := &conn{Conn: accepted, s: s, r: bufio.NewReaderSize(accepted, readBuffer)}
		own.add(c, func() {
			// What ends a connection is told to its client alone. Answers are written though the
			// server is about to end.
			if err := c.serve(ctx, elsewhere); errors.Is(err, errKept) {
				return
			}
			_ = c.Close()
		})
	}
}

// open are the connections that are read here.
type open struct {
	mu     sync.Mutex
	conns  map[*conn]struct{}
	ending bool
	all    sync.WaitGroup
}

func (o *open) add(c *conn, serve func()) {
	o.mu.Lock()
	o.conns[c] = struct{}{}
	ending := o.ending
	o.mu.Unlock()
	if ending {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
	o.all.Go(func() {
		serve()
		o.mu.Lock()
		delete(o.conns, c)
		o.mu.Unlock()
	})
}

// hurry ends connections that wait for a request.
func (o *open) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = true
	for c := range o.conns {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // where it fails the connection has ended
	}
}

func (o *open) wait() { o.all.Wait() }
