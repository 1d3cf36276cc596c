// Package process is a program that this process has started, until it has ended and been
// waited for.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a program that leads a process group of its own.
type Process struct {
	name   string // as errors call it
	log    string // a file that it writes to, "" for none
	cmd    *exec.Cmd
	ending atomic.Bool // it is to end: what it started ends with it
	done   chan struct{}
	err    error // how it ended; valid once done is closed
}

// New returns the process that cmd will be. Once it is started, somebody calls Reap.
func New(cmd *exec.Cmd, name, log string) *Process {
	return &Process{name: name, log: log, cmd: cmd, done: make(chan struct{})}
}

// Reap waits for the process's end. ended, which may be nil, is called when it has ended and
// its ID is not another's yet.
func (p *Process) Reap(ended func()) {
	defer close(p.done)
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.PID(), &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break // any other error shows in Wait
		}
	}
	if p.ending.Load() {
		_ = unix.Kill(-p.PID(), unix.SIGKILL) // what it started and did not move to another session; nobody may be left
	}
	if ended != nil {
		ended()
	}
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well; a child of it still holds its output
	}
	if err != nil {
		p.err = fmt.Errorf("%s: %w", p.name, err)
	}
}

// PID is the process's ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil while it runs and when it ended with 0, else how it ended.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop sends SIGTERM, waits, and after grace or the end of ctx sends SIGKILL. It returns when
// the process has ended.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.ending.Store(true)
	if err := p.cmd.Process.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-p.done:
		return nil
	case <-late.C:
	case <-ctx.Done():
	}
	return p.Kill()
}

// Kill sends SIGKILL and waits.
func (p *Process) Kill() error {
	if err := p.Doom(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// Signal sends a signal and does not wait. That the process has ended is no error.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", p.name, err)
	}
	return nil
}

// Doom sends SIGKILL and does not wait. The error is os.ErrProcessDone where the process has
// been waited for.
func (p *Process) Doom() error {
	p.ending.Store(true)
	return p.cmd.Process.Kill()
}
