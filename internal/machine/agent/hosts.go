package agent

import (
	"context"
	"fmt"
	"io"
	"syscall"

	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

var hostCalls = map[string]call{
	"/host": plain(ofHost, func(_ context.Context, h host.Host, _ nothing) (rpc.Host, error) {
		return rpc.Host{Name: h.Name(), Site: h.Site(), Addr: h.Addr(), Dir: h.Dir()}, nil
	}),
	"/host/usage":   plain(ofHost, func(_ context.Context, h host.Host, _ nothing) (host.Usage, error) { return h.Usage() }),
	"/host/control": plain(ofHost, told(control)),
	"/host/start":   start,
	"/host/dial":    dial,
}

var processCalls = map[string]call{
	"/process/stop": plain(ofProcess, told(func(ctx context.Context, p host.Process, s rpc.Stop) error { return p.Stop(ctx, s.Grace) })),
	"/process/kill": plain(ofProcess, told(func(_ context.Context, p host.Process, family bool) error {
		if family {
			return p.KillFamily()
		}
		return p.Kill()
	})),
	"/process/signal": plain(ofProcess, told(func(_ context.Context, p host.Process, s syscall.Signal) error { return p.Signal(s) })),
	"/process/tail":   plain(ofProcess, func(_ context.Context, p host.Process, lines int) (string, error) { return p.Tail(lines), nil }),
}

func ofProcess(s *server, of rpc.Of) (host.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.processes[of.Process]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no process has the number %d", of.Process)
}

// start starts a program and stays with it to its end: what it says, and how it ends, are frames.
func start(ctx context.Context, s *server, x *exchange) {
	h, err := s.host(x.of)
	if err != nil {
		x.answer(nil, err)
		return
	}
	q, err := asked[rpc.Start](x)
	if err != nil {
		x.answer(nil, err)
		return
	}
	c := host.Command{Name: q.Name, Path: q.Path, Args: q.Args, Env: q.Env, Dir: q.Dir, Log: q.Log, UID: q.UID, GID: q.GID}
	frames := rpc.NewFrames(x.w, x.flush)
	// What it says may come before it is told that it runs.
	begun := make(chan struct{})
	if q.In {
		c.Stdin = x.in
	}
	if q.Out {
		c.Stdout = after{begun, frames.Writer(rpc.Out)}
	}
	switch {
	case q.Joined:
		c.Stderr = c.Stdout
	case q.Err:
		c.Stderr = after{begun, frames.Writer(rpc.Err)}
	}
	p, err := h.Start(ctx, c)
	if err != nil {
		close(begun)
		x.answer(nil, err)
		return
	}
	ok := x.answer(rpc.Started{Process: s.began(p), PID: p.PID()}, nil)
	close(begun)
	if !ok {
		return
	}
	select {
	case <-p.Done():
		_ = frames.Send(rpc.Ended, ending(p.Err())) // who is gone needs no answer
	case <-ctx.Done():
	}
}

// began gives a process its number.
func (s *server) began(p host.Process) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.processes[s.last] = p
	return s.last
}

// after writes once a channel is closed.
type after struct {
	begun <-chan struct{}
	to    io.Writer
}

func (a after) Write(b []byte) (int, error) {
	<-a.begun
	return a.to.Write(b)
}

// dial connects from a node, and carries bytes both ways until the side that was called has told
// all. That this one has told all goes there before.
func dial(ctx context.Context, s *server, x *exchange) {
	h, err := s.host(x.of)
	if err != nil {
		x.answer(nil, err)
		return
	}
	to, err := asked[rpc.Address](x)
	if err != nil {
		x.answer(nil, err)
		return
	}
	conn, err := h.Dial(ctx, to.Network, to.Addr)
	if err != nil {
		x.answer(nil, err)
		return
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	if !x.answer(nothing{}, nil) {
		return
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := io.Copy(conn, x.in)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite() // the other side may have gone
		} else {
			conn.Close()
		}
	}()
	_, _ = io.Copy(flushing{x}, conn) // its end is what the caller sees
	conn.Close()
	x.end.Close()
	<-sent
}

// flushing has each write leave at once.
type flushing struct{ x *exchange }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.x.w.Write(b)
	if err == nil {
		err = f.x.flush()
	}
	return n, err
}
