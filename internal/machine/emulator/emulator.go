// Package emulator selects, starts and reconnects the link engines of a machine.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"skerry/internal/base/advice"
	"skerry/internal/link"
	"skerry/internal/link/netem"
	"skerry/internal/link/userspace"
	"skerry/internal/machine/host"
)

// Names of engines.
const (
	auto      = "auto"
	Netem     = "netem"
	Userspace = "userspace"
)

// Kind is a link engine that a later command's process can reconnect to.
type Kind interface {
	Name() string
	// Available returns why the engine cannot run here, nil if it can.
	Available() error
	Start(ctx context.Context, e Env) (RunningEngine, error)
	// Connect reconnects to the engine that Start left, with its links.
	Connect(ctx context.Context, e Env, links []link.Spec) (RunningEngine, error)
}

// Env is the lab's environment for its engine.
type Env struct {
	Socket, LogFile string // paths
	// Tag marks the engine's process as the lab's.
	Tag string
	Exe string
	// Owned ends the engine with the process that starts it.
	Owned bool
	Log   *slog.Logger
}

// RunningEngine is a running engine.
type RunningEngine struct {
	link.Engine
	// Detach releases the engine and leaves its links.
	Detach func() error
	// Ended is closed when the engine's process has ended; nil without a process.
	Ended <-chan struct{}
	// PID is the engine's process, 0 without one.
	PID int
	// Lateness covers all links; nil if the engine cannot measure it.
	Lateness func(ctx context.Context, reset bool) (link.Lateness, error)
	Warnings []string
}

// Kinds returns all engines in the order of preference.
func Kinds() []Kind { return []Kind{netemKind{}, userspaceKind{}} }

// Choose returns the requested engine and the reason for the choice.
func Choose(asked string, from []Kind) (k Kind, why string, err error) {
	var reasons []error
	for _, k := range from {
		if asked != "" && asked != auto && asked != k.Name() {
			continue
		}
		err := k.Available()
		switch {
		case err == nil && asked == k.Name():
			return k, "it was asked for", nil
		case err == nil && len(reasons) == 0:
			return k, "the kernel has it", nil
		case err == nil:
			return k, errors.Join(reasons...).Error(), nil
		}
		reasons = append(reasons, err)
	}
	if len(reasons) == 0 {
		return nil, "", advice.With(fmt.Errorf("unknown link engine %q", asked), "use %s, %s or %s", auto, Netem, Userspace)
	}
	err = fmt.Errorf("no link engine can run here: %w", errors.Join(reasons...))
	return nil, "", advice.With(err, "%s", advice.Of(reasons[len(reasons)-1]))
}

// Unmet lists the link properties that the engine does not enforce exactly.
func Unmet(engine string, links []link.Spec) []string {
	if engine != Netem {
		return nil
	}
	for _, l := range links {
		if l.AB.Jitter > 0 || l.BA.Jitter > 0 {
			return []string{"netem draws the jitter of each packet on its own: where packets are closer together than the jitter " +
				"the mean latency is higher than set, and the jitter smaller (`engine: userspace` holds both)"}
		}
	}
	return nil
}

// Find returns the engine with this name.
func Find(name string, from []Kind) (Kind, error) {
	for _, k := range from {
		if k.Name() == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("unknown link engine %q", name)
}

type userspaceKind struct{}

func (userspaceKind) Name() string { return Userspace }

func (userspaceKind) Available() error {
	_, err := userspace.Available()
	return err
}

func (userspaceKind) Start(ctx context.Context, e Env) (RunningEngine, error) {
	engine, err := userspace.Start(ctx, userspace.Options{
		Command:       []string{e.Exe, "agent", "link"},
		Socket:        e.Socket,
		LogFile:       e.LogFile,
		Env:           []string{host.LabVariable + "=" + e.Tag},
		ExitWithOwner: e.Owned,
	})
	if err != nil {
		return RunningEngine{}, err
	}
	r := userspaceRunning(engine)
	if ok, reason := engine.RealTime(); !ok {
		r.Warnings = append(r.Warnings, "the link emulator has no real-time priority, so busy processors make links late: "+reason)
	}
	return r, nil
}

func (userspaceKind) Connect(ctx context.Context, e Env, _ []link.Spec) (RunningEngine, error) {
	engine, err := userspace.Connect(ctx, e.Socket)
	if err != nil {
		return RunningEngine{}, err
	}
	return userspaceRunning(engine), nil
}

func userspaceRunning(e *userspace.Engine) RunningEngine {
	return RunningEngine{Engine: e, Detach: e.Detach, PID: e.PID(), Lateness: e.Lateness, Ended: e.Done()}
}

type netemKind struct{}

func (netemKind) Name() string     { return Netem }
func (netemKind) Available() error { return netem.Available() }

func (netemKind) Start(_ context.Context, e Env) (RunningEngine, error) {
	engine := netem.New(e.Log)
	return RunningEngine{Engine: engine, Detach: engine.Detach}, nil
}

func (netemKind) Connect(ctx context.Context, e Env, links []link.Spec) (RunningEngine, error) {
	engine := netem.New(e.Log)
	if err := engine.Adopt(ctx, links); err != nil {
		return RunningEngine{}, errors.Join(err, engine.Detach())
	}
	return RunningEngine{Engine: engine, Detach: engine.Detach}, nil
}
