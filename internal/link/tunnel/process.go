package tunnel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/helperproc"
	"skerry/internal/kernel/realtime"
)

// Options configures Start and StartMesh.
type Options struct {
	// Command is the program and the arguments that make it call Main.
	Command []string
	// LogFile receives the process's log; empty discards it.
	LogFile string
	Env     []string
	// ExitWithOwner ends the tunnels when this process ends for any reason.
	ExitWithOwner bool
	// OnStart is called with the process ID before the process creates anything.
	OnStart func(pid int) error
}

// Tunnels is a set of running tunnels.
type Tunnels struct {
	process *helperproc.Process // nil if the kernel forwards the packets
}

// Start creates tunnels, in the kernel if possible, otherwise in a process. The devices exist when Start returns,
// down and without addresses.
func Start(ctx context.Context, specs []Spec, o Options) (*Tunnels, error) {
	if err := assignKeys(specs); err != nil {
		return nil, err
	}
	if CheckKernel() == nil {
		return &Tunnels{}, createInKernel(specs)
	}
	t, err := spawn(ctx, job{Specs: specs, ExitWithOwner: o.ExitWithOwner}, o)
	if err != nil {
		return nil, fmt.Errorf("start the tunnels' process: %w", err)
	}
	return t, nil
}

func spawn(ctx context.Context, j job, o Options) (*Tunnels, error) {
	p, reply, err := helperproc.Start(ctx, helperproc.Options{
		Command: o.Command, LogFile: o.LogFile, Env: o.Env, Owned: o.ExitWithOwner, OnStart: o.OnStart,
	}, j)
	if err != nil {
		return nil, err
	}
	var a answer
	if err = json.Unmarshal(reply, &a); err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return &Tunnels{process: p}, nil
}

// PID returns the forwarding process, 0 for the kernel.
func (t *Tunnels) PID() int {
	if t.process == nil {
		return 0
	}
	return t.process.PID()
}

// Done is closed when the forwarding process has ended. It is nil if the kernel forwards the packets.
func (t *Tunnels) Done() <-chan struct{} {
	if t.process == nil {
		return nil
	}
	return t.process.Done()
}

// Close ends the process and its tunnels. Tunnels of the kernel end with their namespaces.
func (t *Tunnels) Close() error {
	if t.process == nil {
		return nil
	}
	if err := t.process.Kill(); err != nil {
		return fmt.Errorf("stop the tunnels' process: %w", err)
	}
	return nil
}

// job is the line on standard input.
type job struct {
	Specs []Spec `json:"specs,omitempty"`
	Mesh  *Mesh  `json:"mesh,omitempty"`
	// ExitWithOwner ends the process at the end of its standard input.
	ExitWithOwner bool `json:"exit_with_owner"`
}

// answer is the line on standard output, written when the tunnels exist or failed.
type answer struct {
	Error string `json:"error,omitempty"`
}

// Main runs the process that forwards the packets of tunnels. It reads one line from in, writes one line to out when
// the tunnels exist, and returns when ctx ends or, with ExitWithOwner, when in ends. All devices are removed then.
func Main(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	buffered := bufio.NewReader(in)
	var j job
	line, err := buffered.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &j)
	}
	if err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	helperproc.RaiseFileLimit() // a device and a socket per end
	if j.Mesh != nil {
		// All links between machines depend on this process, as on the emulator: a database that keeps every core
		// busy would add milliseconds. The process does not rest as the emulator does (dataplane/pacing.go). Before
		// Linux 6.12 a stream that fills a processor with encryption may stop for 50 ms per second.
		realtime.RaisePermanently()
	}
	ends, err := openEndpoints(ctx, j.Specs, log)
	if err == nil && j.Mesh != nil {
		var e endpoint
		if e, err = j.Mesh.open(log); err == nil {
			ends = append(ends, e)
		}
	}
	if err == nil {
		callers := slices.Clone(ends)
		err = handshake(ctx, slices.DeleteFunc(callers, func(e endpoint) bool { return !e.initiates }))
	}
	defer func() {
		for _, e := range ends {
			if e.Device != nil {
				e.Close()
			}
		}
	}()
	var a answer
	if err != nil {
		a.Error = err.Error()
	}
	if err := errors.Join(err, json.NewEncoder(out).Encode(a)); err != nil {
		return err
	}
	if j.ExitWithOwner {
		go func() { // a pending read from standard input cannot be cancelled
			_, _ = io.Copy(io.Discard, buffered) // the owner has ended, with or without a read error
			stop()
		}()
	}
	<-ctx.Done()
	return nil
}

// openEndpoints opens all ends. On an error it also returns the ends that were opened.
func openEndpoints(ctx context.Context, specs []Spec, log *slog.Logger) ([]endpoint, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	var mu sync.Mutex
	var ends []endpoint
	for _, s := range specs {
		for i, pair := range [][2]End{{s.A, s.B}, {s.B, s.A}} {
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				e, err := openEndpoint(pair[0], pair[1], log)
				if err != nil {
					return err
				}
				e.initiates = i == 0
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, e)
				return nil
			})
		}
	}
	err := g.Wait()
	return ends, err
}

// A released port may stay in use for a moment:
//
//  1. The process that chose the port holds it with a socket and forks another process. Until the new process
//     executes its program, it has copies of all sockets.
//  2. The first process closes its socket, so that this process can listen. The copy still occupies the port.
const portTimeout, portRetry = 5 * time.Second, 5 * time.Millisecond

// retryPortInUse calls listen again while its port is in use.
func retryPortInUse(listen func() error) error {
	for late := time.Now().Add(portTimeout); ; time.Sleep(portRetry) {
		if err := listen(); !errors.Is(err, unix.EADDRINUSE) || time.Now().After(late) {
			return err
		}
	}
}
