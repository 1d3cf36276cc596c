// Package agent serves a machine to another machine: `skerry agent machine` handles calls on its standard input. When the
// input ends, the agent removes everything that it owns on this machine. If the agent is killed, the next one sweeps.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// Config holds the dependencies of an agent.
type Config struct {
	Machine machine.Machine
	// Examine reports the machine's capabilities.
	Examine func(ctx context.Context) (doctor.Report, error)
	Log     *slog.Logger
}

// Serve handles calls until in ends, the client is silent for too long, or ctx ends. It then removes everything that it owns.
func Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, c Config) error {
	// Without this, a write to a closed pipe would kill the process before it cleans up.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGPIPE)
	defer signal.Stop(broken)
	if _, err := fmt.Fprintf(out, "%s %d\n", rpc.Greeting, rpc.Version); err != nil {
		return fmt.Errorf("send greeting: %w", err)
	}
	conn := rpc.NewConn(in, out)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	s := &server{Config: c, parts: map[int]*part{}, processes: map[int]host.Process{}}
	h := &http.Server{
		Handler: s, Protocols: rpc.Protocols(), HTTP2: rpc.HTTP2Config(), MaxHeaderBytes: 1 << 16,
		ErrorLog:    slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	if err := h.Serve(&singleListener{conn: conn}); !errors.Is(err, io.EOF) {
		conn.Close()
		return errors.Join(fmt.Errorf("serve client: %w", err), s.end(ctx))
	}
	return s.end(ctx)
}

// Stdio returns standard input and output as files whose Close interrupts a pending Read or Write.
func Stdio() (in, out *os.File, err error) {
	for _, fd := range []int{unix.Stdin, unix.Stdout} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, nil, fmt.Errorf("prepare standard input and output: %w", err)
		}
	}
	return os.NewFile(uintptr(unix.Stdin), "standard input"), os.NewFile(uintptr(unix.Stdout), "standard output"), nil
}

// singleListener is a listener for one connection. It ends with the connection.
type singleListener struct {
	conn  *rpc.Conn
	taken sync.Once
}

func (l *singleListener) Accept() (c net.Conn, err error) {
	l.taken.Do(func() { c = l.conn })
	if c != nil {
		return c, nil
	}
	<-l.conn.Closed()
	return nil, io.EOF
}

func (l *singleListener) Close() error   { return nil }
func (l *singleListener) Addr() net.Addr { return l.conn.LocalAddr() }

// server is the state of one client's session.
type server struct {
	Config
	calls sync.WaitGroup

	mu        sync.Mutex
	last      int // number that was given
	parts     map[int]*part
	processes map[int]host.Process
}

// part is a part that this agent prepared or opened.
type part struct {
	machine.Part
	owned bool

	mu sync.Mutex
	// ends: the part ends with this agent, because it is owned or not yet committed. closed: it was released.
	ends, closed bool
}

func (p *part) setEnds(ends bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = ends
}

// Commit implements machine.Part. A part without an owner then stays when the agent ends.
func (p *part) Commit(ctx context.Context, lab json.RawMessage) error {
	err := p.Part.Commit(ctx, lab)
	if err == nil {
		p.setEnds(p.owned)
	}
	return err
}

// Down implements machine.Part. It completes even if the caller disconnects.
func (p *part) Down(ctx context.Context) error {
	err := p.Part.Down(context.WithoutCancel(ctx))
	if err == nil {
		p.setEnds(false)
	}
	return err
}

// Close releases a part without ending it. An owned part then has no owner, as if its owner had died.
func (p *part) Close() error {
	p.mu.Lock()
	p.ends, p.closed = false, true
	p.mu.Unlock()
	return p.Part.Close()
}

// end waits for the calls, whose contexts ended with the connection, and removes what is owned.
func (s *server) end(ctx context.Context) error {
	s.calls.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.parts {
		if p.ends {
			errs = append(errs, p.Down(ctx))
		}
		if !p.closed {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *server) addPart(p *part) rpc.OpenedPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.parts[s.last] = p
	return rpc.OpenedPart{Part: s.last, Facts: p.Facts()}
}

func (s *server) part(of rpc.CallTarget) (*part, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parts[of.Part]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: number %d", machine.ErrNotFound, of.Part)
}

func (s *server) host(of rpc.CallTarget) (host.Host, error) {
	p, err := s.part(of)
	if err != nil {
		return nil, err
	}
	if of.Container != nil {
		return p.ContainerHost(*of.Container)
	}
	return p.Host(of.Node)
}

// describeAgent returns the agent's self-description, with its program's checksum if requested.
func describeAgent(program bool) (rpc.Hello, error) {
	h := rpc.Hello{
		Version: rpc.Version, PID: os.Getpid(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Cores: runtime.NumCPU(), Root: os.Geteuid() == 0,
	}
	var name unix.Utsname
	var info unix.Sysinfo_t
	if err := unix.Uname(&name); err != nil {
		return h, fmt.Errorf("read kernel version: %w", err)
	}
	if err := unix.Sysinfo(&info); err != nil {
		return h, fmt.Errorf("read memory size: %w", err)
	}
	h.Kernel, h.Memory = unix.ByteSliceToString(name.Release[:]), int64(info.Totalram)*int64(info.Unit)
	h.Addr = outboundAddr()
	if !program {
		return h, nil
	}
	var err error
	h.Program, err = files.SHA256("/proc/self/exe")
	return h, err
}

// outboundAddr returns the source address of packets to the Internet, "" if there is no route.
func outboundAddr() string {
	c, err := net.Dial("udp4", "192.0.2.1:9") // nothing is sent (RFC 5737)
	if err != nil {
		return ""
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).IP.String()
}
