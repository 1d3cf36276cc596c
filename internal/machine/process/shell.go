package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/base/tail"
)

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
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // a child still holds the output open
		return out.String(), nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case bounded.Err() != nil:
		err = fmt.Errorf("%w after %v", ErrTimeout, c.Timeout)
	}
	if text := all.String(); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return "", fmt.Errorf("command %s: %w", c.Name, err)
}

// retryPause is the time between two tries of RunShellUntil.
const retryPause = 200 * time.Millisecond

// RunShellUntil repeats a command until it succeeds. Its timeout bounds all tries together.
func RunShellUntil(ctx context.Context, c ShellCommand) error {
	began := time.Now()
	timeout := c.Timeout
	for {
		if c.Timeout > 0 {
			c.Timeout = timeout - time.Since(began)
		}
		_, err := RunShell(ctx, c)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return err
		case timeout > 0 && time.Since(began)+retryPause >= timeout:
			return fmt.Errorf("not successful within %v: %w", timeout, err)
		}
		if err := linger.For(ctx, retryPause); err != nil {
			return err
		}
	}
}
