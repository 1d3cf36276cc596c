// Package agent has a machine be asked from another one: `skerry agent machine` answers what comes
// over its standard input, and nothing else. When that ends, so does all that ends with its
// owner on this machine; what an agent leaves that was killed, the next one sweeps.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// Config is what an agent is made of.
type Config struct {
	Machine machine.Machine
	// Examine tells what the machine can do.
	Examine func(ctx context.Context) (doctor.Report, error)
	Log     *slog.Logger
}

// Serve answers until in ends, the other side is silent for too long, or ctx ends. Then it ends
// what it owns, and returns.
func Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, c Config) error {
	// A write to who is gone is an error and not this process's end, which would leave all.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGPIPE)
	defer signal.Stop(broken)
	if _, err := fmt.Fprintf(out, "%s %d\n", rpc.Greeting, rpc.Version); err != nil {
		return fmt.Errorf("greeting the controller: %w", err)
	}
	conn := rpc.NewConn(in, out)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	s := &server{Config: c, parts: map[int]*part{}, processes: map[int]host.Process{}}
	h := &http.Server{
		Handler: s, Protocols: rpc.Protocols(), HTTP2: rpc.HTTP2(), MaxHeaderBytes: 1 << 16,
		ErrorLog:    slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	if err := h.Serve(&only{conn: conn}); !errors.Is(err, io.EOF) {
		conn.Close()
		return errors.Join(fmt.Errorf("answering the controller: %w", err), s.end(ctx))
	}
	return s.end(ctx)
}

// Stdio are this process's standard input and output, as files whose Close ends a Read or Write
// that waits.
func Stdio() (in, out *os.File, err error) {
	for _, fd := range []int{unix.Stdin, unix.Stdout} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, nil, fmt.Errorf("preparing standard input and output: %w", err)
		}
	}
	return os.NewFile(uintptr(unix.Stdin), "standard input"), os.NewFile(uintptr(unix.Stdout), "standard output"), nil
}

// only is a listener with one connection; it ends with that.
type only struct {
	conn  *rpc.Conn
	taken sync.Once
}

func (l *only) Accept() (c net.Conn, err error) {
	l.taken.Do(func() { c = l.conn })
	if c != nil {
		return c, nil
	}
	<-l.conn.Gone()
	return nil, io.EOF
}

func (l *only) Close() error   { return nil }
func (l *only) Addr() net.Addr { return l.conn.LocalAddr() }

// server is what a controller has asked for.
type server struct {
	Config
	calls sync.WaitGroup

	mu        sync.Mutex
	last      int // number that was given
	parts     map[int]*part
	processes map[int]host.Process
}

// part is one that this agent prepared or opened.
type part struct {
	machine.Part
	owned bool

	mu sync.Mutex
	// ends says that it is to end with this agent: it is owned, or not up yet. closed says that it was
	// let go.
	ends, closed bool
}

func (p *part) set(ends bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = ends
}

// end waits for the calls, whose contexts have ended with the connection, and ends what is owned.
func (s *server) end(ctx context.Context) error {
	s.calls.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.parts {
		if p.ends {
			errs = append(errs, p.Down(context.WithoutCancel(ctx)))
		}
		if !p.closed {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// add gives a part its number.
func (s *server) add(p *part) rpc.Opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.parts[s.last] = p
	return rpc.Opened{Part: s.last, Facts: p.Facts()}
}

// part finds one by its number.
func (s *server) part(of rpc.Of) (*part, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parts[of.Part]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: number %d", machine.ErrNotFound, of.Part)
}

// host finds a node or a container.
func (s *server) host(of rpc.Of) (host.Host, error) {
	p, err := s.part(of)
	if err != nil {
		return nil, err
	}
	if of.Container != nil {
		return p.Contain(*of.Container)
	}
	return p.Host(of.Node)
}
