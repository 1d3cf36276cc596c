// Package daemon runs the server processes of a database cluster and keeps its members. It starts
// servers on nodes once their ports are free, waits until they serve, notices when one ends by
// itself, and ends them all.
//
//	Set ── Start ──► Daemon ── Await ──► serving
//	 │                  │
//	 │ Failed ◄─────────┘ the process ended without Stop, Kill or MarkLeaving
//	 └─ Stop: all of them, at the same time
//
// Errors name the program and its node and end with the last lines of its log.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Sentinel errors.
var (
	// ErrPortTaken means that another process listens on a port that a server needs.
	ErrPortTaken = errors.New("the port is taken")
	// ErrEnded means that a server process exited unexpectedly.
	ErrEnded = errors.New("ended by itself")
	// ErrStopped means that the set was stopped and starts no more servers.
	ErrStopped = errors.New("the cluster was stopped")
)

const (
	// poll is the interval between two checks of a state.
	poll = 20 * time.Millisecond
	// logLines is the number of log lines in an error.
	logLines = 12
	// defaultGrace is the time between SIGTERM and SIGKILL.
	defaultGrace = 10 * time.Second
)

// Spec describes a server to start.
type Spec struct {
	// Command is the process. Errors and logs use its Name. Its Log must be set.
	Command host.Command
	// Ports are the ports of the node that must be free before the start.
	Ports []int
	// Grace is the time between SIGTERM and SIGKILL, 10 s if zero.
	Grace time.Duration
	// Joining marks a server that is no member yet. Until MarkMember or ConfirmMember is called, its
	// end is not a failure of the cluster.
	Joining bool
}

// Daemon is a server process on a node.
type Daemon struct {
	Host host.Host

	spec    Spec
	process host.Process
	state   atomic.Int32
}

// States of a daemon. They decide whether the end of its process is a failure of the cluster.
const (
	member  int32 = iota // the cluster's
	leaving              // of no cluster: the end was requested, or the server is no member yet
	ended                // it has ended, and was judged
)

// start starts a server without waiting until it serves.
func start(ctx context.Context, h host.Host, s Spec) (*Daemon, error) {
	if s.Grace == 0 {
		s.Grace = defaultGrace
	}
	if err := PortsFree(ctx, h, s.Command.Name, s.Ports...); err != nil {
		return nil, err
	}
	p, err := h.Start(ctx, s.Command)
	if err != nil {
		return nil, fmt.Errorf("starting %s on %s: %w", s.Command.Name, h.Name(), err)
	}
	d := &Daemon{Host: h, spec: s, process: p}
	if s.Joining {
		d.state.Store(leaving)
	}
	return d, nil
}

// Await polls ready until it returns nil. It gives up when the process ends, after timeout, or with ctx.
func (d *Daemon) Await(ctx context.Context, timeout time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w: %v", database.ErrNotReady, timeout))
	defer cancel()
	asking, stop := d.whileRunning(ctx)
	defer stop()
	for {
		err := ready(asking)
		if err == nil {
			return nil
		}
		select {
		case <-d.process.Done():
			return fmt.Errorf("starting %s: %w", d.Name(), d.endError())
		case <-ctx.Done():
			return fmt.Errorf("starting %s on %s: %w: %w%s", d.Name(), d.Host.Name(), context.Cause(ctx), err, d.LastLines())
		case <-time.After(poll):
		}
	}
}

func (d *Daemon) whileRunning(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-d.process.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		watcher.Wait()
	}
}

// Name is the server's name in messages.
func (d *Daemon) Name() string { return d.spec.Command.Name }

// PID is the process ID.
func (d *Daemon) PID() int { return d.process.PID() }

// Done is closed when the process has ended.
func (d *Daemon) Done() <-chan struct{} { return d.process.Done() }

// Running reports whether the process has not ended.
func (d *Daemon) Running() bool {
	select {
	case <-d.process.Done():
		return false
	default:
		return true
	}
}

func (d *Daemon) endError() error {
	how := d.process.Err()
	var exit *exec.ExitError
	switch {
	case how == nil:
		how = errors.New("exit status 0")
	case errors.As(how, &exit): // without the name, which stands before
		how = exit
	}
	return fmt.Errorf("%s on %s %w: %w%s", d.Name(), d.Host.Name(), ErrEnded, how, d.LastLines())
}

// LastLines returns the last lines of the log with an introduction, for the end of an error.
func (d *Daemon) LastLines() string {
	t := strings.TrimRight(d.process.Tail(logLines), "\n")
	if t == "" {
		return "; its log is empty"
	}
	return "; the last lines of its log:\n" + t
}

// MarkLeaving makes the end of the process no failure of the cluster.
func (d *Daemon) MarkLeaving() { d.state.Store(leaving) }

// isFailure reports, once the process has ended, whether its end is a failure of the cluster.
func (d *Daemon) isFailure() bool { return d.state.Swap(ended) == member }

// MarkMember makes the end of the process a failure of the cluster again. An earlier end is left to its waiters.
func (d *Daemon) MarkMember() { d.state.CompareAndSwap(leaving, member) }

// ConfirmMember is MarkMember that returns an error if the process has ended.
func (d *Daemon) ConfirmMember() error {
	if !d.Running() || !d.state.CompareAndSwap(leaving, member) {
		return d.endError()
	}
	return nil
}

// Stop ends the process with SIGTERM, and with SIGKILL after its grace.
func (d *Daemon) Stop(ctx context.Context) error {
	return d.end("stopping", func() error { return d.process.Stop(ctx, d.spec.Grace) })
}

// Halt ends the process with SIGTERM or, abruptly, with SIGKILL.
func (d *Daemon) Halt(ctx context.Context, manner database.Manner) error {
	if manner == database.Abrupt {
		return d.Kill()
	}
	return d.Stop(ctx)
}

// AwaitEnd waits until a process marked as Leaving exits on its own. After patience it is stopped.
func (d *Daemon) AwaitEnd(ctx context.Context, patience time.Duration) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-d.Done():
		return nil
	case <-late.C:
	case <-ctx.Done():
	}
	return d.Stop(ctx)
}

// Kill ends the process with SIGKILL.
func (d *Daemon) Kill() error { return d.end("killing", d.process.Kill) }

// KillFamily is Kill for the process and all its descendants.
func (d *Daemon) KillFamily() error { return d.end("killing", d.process.KillFamily) }

// Signal sends a signal that ends the process, and marks it as leaving.
func (d *Daemon) Signal(s syscall.Signal) error {
	return d.end("stopping", func() error { return d.process.Signal(s) })
}

// end ends the process, whose end is no failure of the cluster.
func (d *Daemon) end(doing string, how func() error) error {
	d.state.Store(leaving)
	if err := how(); err != nil {
		return fmt.Errorf("%s %s on %s: %w", doing, d.Name(), d.Host.Name(), err)
	}
	return nil
}

const portTimeout = 5 * time.Second

// PortsFree returns an error that wraps ErrPortTaken if a process listens on one of the ports.
// Start checks too, but a caller that first empties the server's directory must check before.
// Name is the server's name in the error.
//
// The check connects. A listener of its own could be inherited by a program that starts at the
// same time, and would then block the server.
func PortsFree(ctx context.Context, h host.Host, name string, ports ...int) error {
	for _, port := range ports {
		err := host.CheckAccepts(ctx, h, net.JoinHostPort(host.Listen(h), strconv.Itoa(port)), portTimeout)
		if err == nil {
			err := fmt.Errorf("starting %s on %s: port %d of %s: %w", name, h.Name(), port, host.Listen(h), ErrPortTaken)
			return advice.With(err, "end what listens there, or choose another port in the database's options")
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("starting %s on %s: trying port %d: %w", name, h.Name(), port, err)
		}
	}
	return nil
}
