// Package process signals, stops, kills and reaps a started program.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/base/tail"
	"skerry/internal/kernel/procfs"
)

// Process is a program that leads a process group.
type Process struct {
	name      string // as errors call it
	log       string // a file that it writes to, "" for none
	cmd       *exec.Cmd
	killGroup atomic.Bool // the process must end together with its children
	done      chan struct{}
	err       error // how it ended; valid once done is closed
}

// New returns a process for cmd. After starting cmd, the caller must call Reap.
func New(cmd *exec.Cmd, name, log string) *Process {
	return &Process{name: name, log: log, cmd: cmd, done: make(chan struct{})}
}

// Reap waits for the process to end. It calls ended, unless nil, before the process ID can be reused.
func (p *Process) Reap(ended func()) {
	defer close(p.done)
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.PID(), &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break // any other error shows in Wait
		}
	}
	if p.killGroup.Load() {
		_ = unix.Kill(-p.PID(), unix.SIGKILL) // what it started and did not move to another session; none may be left
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

func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil while the process runs and after exit status 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop sends SIGTERM and, after grace or the end of ctx, SIGKILL. It returns when the process has ended.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.killGroup.Store(true)
	if err := p.cmd.Process.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
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
	if err := p.SendKill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// Signal sends a signal and does not wait. An ended process is not an error.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// SendKill sends SIGKILL and does not wait. It returns os.ErrProcessDone if the process has been reaped.
func (p *Process) SendKill() error {
	p.killGroup.Store(true)
	return p.cmd.Process.Kill()
}

const (
	// childPoll is the interval between checks for killed children of a killed process, which cannot be waited for.
	childPoll = 5 * time.Millisecond
	// childPatience bounds this wait: the kernel may never release a process.
	childPatience = 20 * time.Second
)

// KillFamily kills the process and its children, even in other sessions. It lists the children first, because the kill
// changes their parent.
func (p *Process) KillFamily() error {
	select {
	case <-p.done:
		return nil // its ID may be another's
	default:
	}
	var children []procfs.Process
	for _, pid := range procfs.ListChildren(p.PID()) {
		if c, err := procfs.FindProcess(pid); err == nil { // else it has ended
			children = append(children, c)
		}
	}
	err := p.Kill()
	for _, c := range children {
		if e := c.Kill(); e != nil {
			err = errors.Join(err, fmt.Errorf("kill child of %s: %w", p.name, e))
		}
	}
	for began := time.Now(); slices.ContainsFunc(children, procfs.Process.Alive) && time.Since(began) < childPatience; {
		time.Sleep(childPoll)
	}
	return err
}

// tailBytes is how much of a log's end Tail reads.
const tailBytes = 64 << 10

// Tail returns the last n lines of the log, "" without one. For a crashed Go program it returns the first n lines of the
// crash report, which name the cause.
func (p *Process) Tail(n int) string {
	log, err := os.Open(p.log)
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
	from := max(0, len(lines)-n)
	if at := crash(lines); at >= 0 {
		from = min(from, at)
	}
	return strings.Join(lines[from:min(from+n, len(lines))], "\n")
}

// crash returns the index of the line that begins a Go crash report at the end of a log, -1 without one.
func crash(lines []string) int {
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "\t") || !strings.Contains(last, ".go:") {
		return -1 // no frame of a stack
	}
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return i
		}
	}
	return -1
}

// ShellCommand is a line of a user for /bin/sh, on the machine of this process.
type ShellCommand struct {
	// Name is what errors call the command ("up").
	Name string
	Text string
	// Dir is the working directory. The environment is that of this process, with Env added.
	Dir string
	Env []string
	// Timeout bounds the command, 0 for no limit.
	Timeout time.Duration
}

// ShellResult is how a command ended.
type ShellResult struct {
	// Stdout is what the command wrote to standard output, Output the last lines of both outputs.
	Stdout, Output string
	// Exit is the exit status, -1 if a signal ended the command or it did not start.
	Exit int
}

// ErrTimeout means that a command did not end in time.
var ErrTimeout = errors.New("timeout")

// shellOutputDelay bounds how long the output of children is read that outlive their command.
const shellOutputDelay = time.Second

// Bounds of the end of the output, in bytes: what RunShell returns, and what an error shows.
const (
	keptOutput  = 1 << 20
	shownOutput = 500
)

// RunShell runs a command and returns what it wrote to standard output. When ctx ends or the time is over, it kills the
// command's process group. An error has the last lines of the output.
func RunShell(ctx context.Context, c ShellCommand) (string, error) {
	r, err := ExecuteShell(ctx, c)
	if err != nil {
		return "", err
	}
	return r.Stdout, nil
}

// ExecuteShell is RunShell with the whole result, which also belongs to an error.
func ExecuteShell(ctx context.Context, c ShellCommand) (ShellResult, error) {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if c.Timeout > 0 {
		bounded, cancel = context.WithTimeoutCause(ctx, c.Timeout, ErrTimeout)
	}
	defer cancel()
	cmd := exec.CommandContext(bounded, "/bin/sh", "-c", c.Text)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.Dir, append(os.Environ(), c.Env...), shellOutputDelay
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, all := tail.New(keptOutput), tail.New(shownOutput)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, all), all
	err := cmd.Run()
	r := ShellResult{Stdout: out.String(), Output: all.String(), Exit: -1}
	if cmd.ProcessState != nil {
		r.Exit = cmd.ProcessState.ExitCode()
	}
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // a child still holds the output open
		return r, nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case bounded.Err() != nil:
		err = fmt.Errorf("%w after %v", ErrTimeout, c.Timeout)
	}
	if r.Output != "" {
		err = fmt.Errorf("%w: %s", err, r.Output)
	}
	return r, fmt.Errorf("command %s: %w", c.Name, err)
}

// retryPause is the time between two tries of RunShellUntil.
const retryPause = 200 * time.Millisecond

// RunShellUntil repeats a command until it succeeds, and returns the result of the last try. Its timeout bounds all
// tries together.
func RunShellUntil(ctx context.Context, c ShellCommand) (ShellResult, error) {
	began := time.Now()
	timeout := c.Timeout
	for {
		if timeout > 0 {
			c.Timeout = timeout - time.Since(began)
		}
		r, err := ExecuteShell(ctx, c)
		switch {
		case err == nil:
			return r, nil
		case ctx.Err() != nil:
			return r, err
		case timeout > 0 && time.Since(began)+retryPause >= timeout:
			return r, fmt.Errorf("not successful within %v: %w", timeout, err)
		}
		if err := linger.For(ctx, retryPause); err != nil {
			return r, err
		}
	}
}
