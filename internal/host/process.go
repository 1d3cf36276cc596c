package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// process is a Process of a Node.
type process struct {
	node    *Node
	command Command
	cmd     *exec.Cmd
	ending  atomic.Bool // Stop or Kill was called: what it started is to end with it
	done    chan struct{}
	err     error // how it ended; valid once done is closed
}

var _ Process = (*process)(nil)

func (p *process) PID() int { return p.cmd.Process.Pid }

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// reap waits for the process's end.
func (p *process) reap() {
	defer p.node.dismiss(p)
	defer close(p.done)
	p.awaitZombie()
	// It is not waited for, so its ID still names it and its group.
	if p.ending.Load() {
		p.signalGroup(unix.SIGKILL)
	}
	p.node.retire(p.PID())
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well; a child of it still holds its output
	}
	if err != nil {
		p.err = fmt.Errorf("%s on %s: %w", p.command.Name, p.node.spec.Name, err)
	}
}

func (p *process) awaitZombie() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.PID(), &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return // any other error shows in Wait
		}
	}
}

// signalGroup signals what the process started and did not move to another session.
func (p *process) signalGroup(s unix.Signal) { _ = unix.Kill(-p.PID(), s) } // nobody may be left

// signalAll kills the process and its group without waiting.
func (p *process) signalAll() {
	p.ending.Store(true)
	_ = p.cmd.Process.Kill() // it may have ended
}

func (p *process) Stop(ctx context.Context, grace time.Duration) error {
	p.ending.Store(true)
	if err := p.cmd.Process.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s on %s: %w", p.command.Name, p.node.spec.Name, err)
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
		return fmt.Errorf("kill %s on %s: %w", p.command.Name, p.node.spec.Name, err)
	}
	<-p.done
	return nil
}

// tailBytes is how much of the end of a log Tail looks at.
const tailBytes = 64 << 10

func (p *process) Tail(n int) string {
	log, err := os.Open(p.command.Log)
	if err != nil {
		return ""
	}
	defer log.Close()
	size, err := log.Seek(0, 2)
	if err != nil {
		return ""
	}
	text := make([]byte, min(size, tailBytes))
	if _, err := log.ReadAt(text, size-int64(len(text))); err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
