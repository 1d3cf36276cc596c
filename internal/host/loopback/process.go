package loopback

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/host"
)

// process is a program that runs on a node.
type process struct {
	cmd    *exec.Cmd
	log    string
	ending atomic.Bool // Stop or Kill was called: what it started ends with it
	done   chan struct{}
	err    error // how it ended; valid once done is closed
}

var _ host.Process = (*process)(nil)

// reap waits for the process's end.
func (p *process) reap() {
	defer close(p.done)
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, p.PID(), &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	// It is not waited for, so its ID still names it and its group.
	if p.ending.Load() {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // nobody may be left
	}
	if p.err = p.cmd.Wait(); errors.Is(p.err, exec.ErrWaitDelay) {
		p.err = nil // it ended well; a child of it still holds its output
	}
}

func (p *process) PID() int              { return p.cmd.Process.Pid }
func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

func (p *process) Stop(ctx context.Context, grace time.Duration) error {
	p.ending.Store(true)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending process %d: %w", p.PID(), err)
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

func (p *process) Kill() error {
	p.ending.Store(true)
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing process %d: %w", p.PID(), err)
	}
	<-p.done
	return nil
}

func (p *process) Tail(n int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
