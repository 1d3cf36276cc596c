// Package daemon keeps the server processes of a database cluster, for the packages
// that are databases: it starts them on nodes once their ports are free, waits for
// their own word that they serve, notices when one ends that nobody ended, and ends
// them all.
//
//	Set ── Start ──► Daemon ── Await ──► serving
//	 │                  │
//	 │ Failed ◄─────────┘ its process ended, and neither Stop nor Kill was called
//	 └─ Stop: all of them, at the same time
//
// Errors name the program and its node and hold the last lines of its log.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Sentinel errors.
var (
	// ErrPortTaken says that something else listens where a server is to.
	ErrPortTaken = errors.New("the port is taken")
	// ErrEnded says that a server's process ended without being asked to.
	ErrEnded = errors.New("ended by itself")
	// ErrStopped says that all servers were ended, and no other is started.
	ErrStopped = errors.New("the cluster was stopped")
)

const (
	// poll is how often a state that becomes true is asked for.
	poll = 20 * time.Millisecond
	// logLines are how many lines of a log an error shows.
	logLines = 12
	// defaultGrace is what a server gets between SIGTERM and SIGKILL.
	defaultGrace = 10 * time.Second
)

// Spec is a server to start.
type Spec struct {
	// Command is the process. Its Name is what errors and logs call it; its Log must
	// be set.
	Command host.Command
	// Ports on the node's address that must be free before it starts.
	Ports []int
	// Grace is what it gets between SIGTERM and SIGKILL; 10 s when 0.
	Grace time.Duration
	// Joining says that the server is no member yet: until Joined or Staying is called, its
	// end is the join's failure and not the cluster's.
	Joining bool
}

// Daemon is a server process on a node.
type Daemon struct {
	Host host.Host

	spec    Spec
	process host.Process
	state   atomic.Int32
}

// States of a daemon: whose failure the end of its process is.
const (
	member  int32 = iota // the cluster's
	leaving              // nobody's: it was asked for, or the server is no member yet
	ended                // it has ended, and was judged
)

// start starts a server; it does not wait until it serves.
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

// Await asks until the server says that it serves: ready returns nil. It gives up when
// the process ends, after timeout, or with ctx.
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

// whileRunning is a context that ends with the server's process, so that no question to
// it outlives it.
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

// Name is what messages call the server.
func (d *Daemon) Name() string { return d.spec.Command.Name }

// PID is its process' ID.
func (d *Daemon) PID() int { return d.process.PID() }

// Done is closed when its process has ended.
func (d *Daemon) Done() <-chan struct{} { return d.process.Done() }

// Running tells whether its process has not ended.
func (d *Daemon) Running() bool {
	select {
	case <-d.process.Done():
		return false
	default:
		return true
	}
}

// endError is how the process ended, with the last lines of its log.
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

// LastLines are the last lines of its log, introduced, for the end of an error.
func (d *Daemon) LastLines() string {
	t := strings.TrimRight(d.process.Tail(logLines), "\n")
	if t == "" {
		return "; its log is empty"
	}
	return "; the last lines of its log:\n" + t
}

// MarkLeaving says that the server will end by itself and may: a member that was told to
// leave its cluster, for example.
func (d *Daemon) MarkLeaving() { d.state.Store(leaving) }

// isFailure tells, once its process has ended, whether that is the cluster's failure.
func (d *Daemon) isFailure() bool { return d.state.Swap(ended) == member }

// MarkMember takes Leaving back, and Joining: the server has become a member. If it has ended
// meanwhile, that is seen by who waits for it to serve.
func (d *Daemon) MarkMember() { d.state.CompareAndSwap(leaving, member) }

// ConfirmMember is Staying for a server that nobody waits for: the error is how it has ended.
func (d *Daemon) ConfirmMember() error {
	if !d.Running() || !d.state.CompareAndSwap(leaving, member) {
		return d.endError()
	}
	return nil
}

// Stop ends it with SIGTERM, and with SIGKILL when it takes longer than its grace.
func (d *Daemon) Stop(ctx context.Context) error {
	d.state.Store(leaving)
	if err := d.process.Stop(ctx, d.spec.Grace); err != nil {
		return fmt.Errorf("stopping %s on %s: %w", d.Name(), d.Host.Name(), err)
	}
	return nil
}

// Halt ends the process with SIGTERM or, abruptly, with SIGKILL.
func (d *Daemon) Halt(ctx context.Context, manner database.Manner) error {
	if manner == database.Abrupt {
		return d.Kill()
	}
	return d.Stop(ctx)
}

// AwaitEnd waits until a process marked as Leaving ends by itself. After patience it is stopped.
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

// Kill ends it with SIGKILL.
func (d *Daemon) Kill() error {
	d.state.Store(leaving)
	if err := d.process.Kill(); err != nil {
		return fmt.Errorf("killing %s on %s: %w", d.Name(), d.Host.Name(), err)
	}
	return nil
}

// KillFamily is Kill for its process and those that this one has started.
func (d *Daemon) KillFamily() error {
	d.state.Store(leaving)
	if err := d.process.KillFamily(); err != nil {
		return fmt.Errorf("killing %s on %s: %w", d.Name(), d.Host.Name(), err)
	}
	return nil
}

// Signal sends its process a signal, and says what Leaving does: it is to end by that.
func (d *Daemon) Signal(s syscall.Signal) error {
	d.state.Store(leaving)
	if err := d.process.Signal(s); err != nil {
		return fmt.Errorf("stopping %s on %s: %w", d.Name(), d.Host.Name(), err)
	}
	return nil
}
