package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"skerry/internal/kernel/helperproc"
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
	OnStart func(pid int) error
}

// Tunnels are at work.
type Tunnels struct {
	process *helperproc.Process // nil where the kernel has them
}

// Start makes tunnels: by the kernel where it can, else by a process of their own. The
// devices are there when it returns, without addresses and down.
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
	p, said, err := helperproc.Start(ctx, helperproc.Options{
		Command: o.Command, LogFile: o.LogFile, Env: o.Env, Owned: o.ExitWithOwner, OnStart: o.OnStart,
	}, j)
	if err != nil {
		return nil, err
	}
	var a answer
	if err = json.Unmarshal(said, &a); err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return &Tunnels{process: p}, nil
}

// PID is the process that moves the packets, 0 where the kernel does.
func (t *Tunnels) PID() int {
	if t.process == nil {
		return 0
	}
	return t.process.PID()
}

// Done is closed when that process has ended; nil where the kernel moves the packets.
func (t *Tunnels) Done() <-chan struct{} {
	if t.process == nil {
		return nil
	}
	return t.process.Done()
}

// Close ends the process, and with it the tunnels; those of the kernel end with their
// namespaces.
func (t *Tunnels) Close() error {
	if t.process == nil {
		return nil
	}
	if err := t.process.Kill(); err != nil {
		return fmt.Errorf("end the tunnels' process: %w", err)
	}
	return nil
}
