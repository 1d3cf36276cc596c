package tunnel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// Options of Start.
type Options struct {
	// Command is the program and the arguments that make it call Main.
	Command []string
	// LogFile is what the process's messages are appended to; default none.
	LogFile string
	// Env is added to this process's environment.
	Env []string
	// ExitWithOwner ends the tunnels when this process ends, however it ends.
	ExitWithOwner bool
	// Began is told of the process as soon as it runs, before it makes anything.
	Began func(pid int) error
}

// Tunnels are at work.
type Tunnels struct {
	process *exec.Cmd // nil where the kernel has them
	stdin   io.Closer
	ended   chan struct{}
}

// Start makes tunnels: by the kernel where it can, else by a process of their own. The
// devices are there when it returns, without addresses and down.
func Start(ctx context.Context, specs []Spec, o Options) (*Tunnels, error) {
	if err := prepare(specs); err != nil {
		return nil, err
	}
	if KernelMissing() == nil {
		return &Tunnels{}, inKernel(specs)
	}
	t, err := spawn(ctx, specs, o)
	if err != nil {
		return nil, fmt.Errorf("start the tunnels' process: %w", err)
	}
	return t, nil
}

func spawn(ctx context.Context, specs []Spec, o Options) (*Tunnels, error) {
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	// A session of its own: Ctrl-C is for the command that takes the lab down.
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
	t := &Tunnels{process: cmd, stdin: stdin, ended: make(chan struct{})}
	err = greet(ctx, specs, o, stdin, stdout, cmd.Process)
	go func() {
		defer close(t.ended)
		_ = cmd.Wait() // that it ended is what counts
	}()
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// greet hands the job over and waits for the answer.
func greet(ctx context.Context, specs []Spec, o Options, stdin io.Writer, stdout io.Reader, p *os.Process) error {
	if o.Began != nil {
		if err := o.Began(p.Pid); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() }) // ends the wait below
	defer stop()
	if err := json.NewEncoder(stdin).Encode(job{Specs: specs, ExitWithOwner: o.ExitWithOwner}); err != nil {
		return fmt.Errorf("hand over the tunnels to make: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var a answer
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return err
}

// PID is the process that moves the packets, 0 where the kernel does.
func (t *Tunnels) PID() int {
	if t.process == nil {
		return 0
	}
	return t.process.Process.Pid
}

// Ended is closed when that process has ended; nil where the kernel moves the packets.
func (t *Tunnels) Ended() <-chan struct{} { return t.ended }

// Close ends the process, and with it the tunnels; those of the kernel end with their
// namespaces.
func (t *Tunnels) Close() error {
	if t.process == nil {
		return nil
	}
	if err := t.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the tunnels' process: %w", err)
	}
	<-t.ended
	_ = t.stdin.Close() // nobody reads it
	return nil
}
