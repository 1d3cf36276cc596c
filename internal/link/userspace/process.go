package userspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skerry/internal/kernel/helperproc"
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
	// Threads that move packets, each on a processor of its own, as many as there are processors at
	// most. By default there are two, of which the second takes a part where a third processor is there
	// for who sends and receives, and else only stands in for the first. Asked for, all take part.
	Threads int
}

// maxSocketPath is what sockaddr_un holds.
const maxSocketPath = 107

// Start starts an emulator and connects to it. ctx bounds the start alone.
func Start(ctx context.Context, o Options) (*Engine, error) {
	p, err := spawn(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start the link emulator: %w", err)
	}
	e, err := Connect(ctx, o.Socket)
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	e.process = p
	return e, nil
}

// process is an emulator that this process started.
type process struct{ *helperproc.Process }

func spawn(ctx context.Context, o Options) (*process, error) {
	if len(o.Socket) > maxSocketPath {
		return nil, fmt.Errorf("socket path %s has %d bytes, at most %d are allowed", o.Socket, len(o.Socket), maxSocketPath)
	}
	p, said, err := helperproc.Start(ctx, helperproc.Options{Command: o.Command, LogFile: o.LogFile, Env: o.Env, Owned: o.ExitWithOwner},
		config{Socket: o.Socket, ExitWithOwner: o.ExitWithOwner, Kind: o.Kind, Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	var r ready
	if err = json.Unmarshal(said, &r); err != nil {
		err = fmt.Errorf("it said %q: %w", bytes.TrimSpace(said), err)
	} else {
		err = decodeError(r.Error)
	}
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return &process{p}, nil
}

// shutdownGrace is how long an emulator that was told to end may take before it is killed.
const shutdownGrace = 10 * time.Second

// wait waits until the process has ended by itself and kills it when it does not.
func (p *process) wait(ctx context.Context) error {
	late := time.NewTimer(shutdownGrace)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-ctx.Done():
		return p.Kill()
	case <-late.C:
		return errors.Join(errors.New("the link emulator did not end and was killed"), p.Kill())
	}
	p.Close()
	return nil
}

// exitError says how the process ended, with the last it said.
func (p *process) exitError() error {
	select {
	case <-p.Done():
	case <-time.After(time.Second): // its connection ends a moment before itself
		return ErrEnded
	}
	return fmt.Errorf("%w: %s", ErrEnded, p.ExitStatus())
}
