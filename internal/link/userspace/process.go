package userspace

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"skerry/internal/link/userspace/device"
)

// Options say how the emulator's process is started.
type Options struct {
	// Command is the program and the arguments that make it call Main.
	Command []string
	// Socket is the path of the unix socket to be reached by; at most 107 bytes.
	Socket string
	// LogFile is what the process's messages are appended to; default none.
	LogFile string
	// Env is added to this process's environment.
	Env []string
	// ExitWithOwner ends the emulator when this process ends, however it ends.
	ExitWithOwner bool
	// Kind of devices to use; default what Available says.
	Kind device.Kind
}

// longestSocket is what sockaddr_un holds.
const longestSocket = 107

// Start starts an emulator and connects to it. ctx bounds the start alone.
func Start(ctx context.Context, o Options) (*Engine, error) {
	p, err := spawn(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start the link emulator: %w", err)
	}
	e, err := Connect(ctx, o.Socket)
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
	e.process = p
	return e, nil
}

// process is an emulator that this process started.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer // its end tells the emulator that its owner is gone
	log   string
	done  chan struct{}
	err   error // how it ended; valid once done is closed
}

func spawn(ctx context.Context, o Options) (*process, error) {
	if len(o.Command) == 0 {
		return nil, errors.New("no command given")
	}
	if len(o.Socket) > longestSocket {
		return nil, fmt.Errorf("socket path %s has %d bytes, at most %d are allowed", o.Socket, len(o.Socket), longestSocket)
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	// A session of its own: Ctrl-C is for the command that takes the lab down, which
	// still needs the links.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = slices.Concat(os.Environ(), o.Env)
	if o.LogFile != "" {
		log, err := os.OpenFile(o.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		defer log.Close()
		cmd.Stderr = log
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, log: o.LogFile, done: make(chan struct{})}
	err = greet(ctx, o, stdin, stdout, cmd.Process)
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

// greet sends the configuration and waits until the process listens.
func greet(ctx context.Context, o Options, stdin io.WriteCloser, stdout io.Reader, child *os.Process) error {
	// Killing it ends the read.
	defer context.AfterFunc(ctx, func() { _ = child.Kill() })()
	line, err := json.Marshal(config{Socket: o.Socket, ExitWithOwner: o.ExitWithOwner, Kind: o.Kind})
	if err != nil {
		return err
	}
	if _, err := stdin.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("send configuration: %w%s", err, tail(o.LogFile))
	}
	if !o.ExitWithOwner {
		if err := stdin.Close(); err != nil {
			return err
		}
	}
	said, err := bufio.NewReader(io.LimitReader(stdout, maxLine)).ReadBytes('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("it ended before it was ready%s", tail(o.LogFile))
	}
	var r ready
	if err := json.Unmarshal(said, &r); err != nil {
		return fmt.Errorf("it said %q: %w", bytes.TrimSpace(said), err)
	}
	return fromWire(r.Error)
}

// grace is how long an emulator that was told to end may take before it is killed.
const grace = 10 * time.Second

// wait waits until the process has ended by itself and kills it when it does not.
func (p *process) wait(ctx context.Context) error {
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-p.done:
	case <-ctx.Done():
		return p.kill()
	case <-late.C:
		return errors.Join(errors.New("the link emulator did not end and was killed"), p.kill())
	}
	p.stdin.Close() // frees the descriptor; the reader is gone
	return nil
}

func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	p.stdin.Close() // frees the descriptor; the reader is gone
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// obituary says how the process ended, with the last it said.
func (p *process) obituary() error {
	select {
	case <-p.done:
	case <-time.After(time.Second): // its connection ends a moment before itself
		return ErrEnded
	}
	how := "by itself"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%w: %s%s", ErrEnded, how, tail(p.log))
}

// tailBytes is how much of a log goes into an error.
const tailBytes = 512

// tail returns the end of a log, on lines of its own, or "".
func tail(path string) string {
	if path == "" {
		return ""
	}
	log, err := os.ReadFile(path)
	log = bytes.TrimSpace(log)
	if err != nil || len(log) == 0 {
		return ""
	}
	return "\n" + string(log[max(0, len(log)-tailBytes):])
}
