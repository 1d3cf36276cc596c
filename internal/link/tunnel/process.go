package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"skerry/internal/kernel/helperproc"
)

// Options configures Start and StartMesh.
type Options struct {
	// Command is the program and the arguments that make it call Main.
	Command []string
	// LogFile receives the process's log; empty discards it.
	LogFile string
	Env     []string
	// ExitWithOwner ends the tunnels when this process ends for any reason.
	ExitWithOwner bool
	// OnStart is called with the process ID before the process creates anything.
	OnStart func(pid int) error
}

// Tunnels is a set of running tunnels.
type Tunnels struct {
	process *helperproc.Process // nil if the kernel forwards the packets
}

// Start creates tunnels, in the kernel if possible, otherwise in a process. The devices exist when Start returns,
// down and without addresses.
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

// PID returns the forwarding process, 0 for the kernel.
func (t *Tunnels) PID() int {
	if t.process == nil {
		return 0
	}
	return t.process.PID()
}

// Done is closed when the forwarding process has ended. It is nil if the kernel forwards the packets.
func (t *Tunnels) Done() <-chan struct{} {
	if t.process == nil {
		return nil
	}
	return t.process.Done()
}

// Close ends the process and its tunnels. Tunnels of the kernel end with their namespaces.
func (t *Tunnels) Close() error {
	if t.process == nil {
		return nil
	}
	if err := t.process.Kill(); err != nil {
		return fmt.Errorf("end the tunnels' process: %w", err)
	}
	return nil
}
