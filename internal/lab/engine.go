package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"skerry/internal/advice"
	"skerry/internal/host"
	"skerry/internal/link"
	"skerry/internal/link/netem"
	"skerry/internal/link/userspace"
)

// Names of engines.
const (
	engineAuto      = "auto"
	engineNetem     = "netem"
	engineUserspace = "userspace"
)

// backend is a link engine as labs use it: one that can be found again by the process of
// a later command.
type backend interface {
	name() string
	// available says why the engine cannot be used here, nil when it can.
	available() error
	start(ctx context.Context, e engineEnv) (running, error)
	// connect finds the engine that start left, with the links that it has.
	connect(ctx context.Context, e engineEnv, links []link.Spec) (running, error)
}

// engineEnv is what a lab gives its engine.
type engineEnv struct {
	place     place
	id        string
	exe       string
	ephemeral bool
	log       *slog.Logger
}

// running is an engine at work.
type running struct {
	link.Engine
	// detach lets go of the engine and leaves its links.
	detach func() error
	// ended is closed when the engine's process has ended; nil where it has none.
	ended <-chan struct{}
	// pid is the engine's process, 0 where it has none.
	pid int
	// lateness over all links; nil where the engine cannot know.
	lateness func(ctx context.Context, reset bool) (link.Lateness, error)
	warnings []string
}

// backends in the order that auto prefers them.
func backends() []backend { return []backend{netemBackend{}, userspaceBackend{}} }

// choose picks the engine asked for, and says why that one.
func choose(asked string, from []backend) (b backend, why string, err error) {
	var reasons []error
	for _, b := range from {
		if asked != "" && asked != engineAuto && asked != b.name() {
			continue
		}
		err := b.available()
		switch {
		case err == nil && asked == b.name():
			return b, "it was asked for", nil
		case err == nil && len(reasons) == 0:
			return b, "the kernel has it", nil
		case err == nil:
			return b, errors.Join(reasons...).Error(), nil
		}
		reasons = append(reasons, err)
	}
	if len(reasons) == 0 {
		return nil, "", advice.With(fmt.Errorf("unknown link engine %q", asked), "use %s, %s or %s", engineAuto, engineNetem, engineUserspace)
	}
	err = fmt.Errorf("no link engine can run here: %w", errors.Join(reasons...))
	return nil, "", advice.With(err, "%s", advice.Of(reasons[len(reasons)-1]))
}

// find returns the engine that a lab was made with.
func find(name string, from []backend) (backend, error) {
	for _, b := range from {
		if b.name() == name {
			return b, nil
		}
	}
	return nil, fmt.Errorf("unknown link engine %q", name)
}

type userspaceBackend struct{}

func (userspaceBackend) name() string { return engineUserspace }

func (userspaceBackend) available() error {
	_, err := userspace.Available()
	return err
}

func (userspaceBackend) start(ctx context.Context, e engineEnv) (running, error) {
	engine, err := userspace.Start(ctx, userspace.Options{
		Command:       []string{e.exe, "agent", "link"},
		Socket:        e.place.file(socketFile),
		LogFile:       e.place.file(logFile),
		Env:           []string{host.LabVariable + "=" + e.id},
		ExitWithOwner: e.ephemeral,
	})
	if err != nil {
		return running{}, err
	}
	r := userspaceRunning(engine)
	if ok, reason := engine.RealTime(); !ok {
		r.warnings = append(r.warnings, "the link emulator has no real-time priority, so busy processors make links late: "+reason)
	}
	return r, nil
}

func (userspaceBackend) connect(ctx context.Context, e engineEnv, _ []link.Spec) (running, error) {
	engine, err := userspace.Connect(ctx, e.place.file(socketFile))
	if err != nil {
		return running{}, err
	}
	return userspaceRunning(engine), nil
}

func userspaceRunning(e *userspace.Engine) running {
	return running{Engine: e, detach: e.Detach, pid: e.PID(), lateness: e.Lateness, ended: e.Done()}
}

type netemBackend struct{}

func (netemBackend) name() string     { return engineNetem }
func (netemBackend) available() error { return netem.Available() }

func (netemBackend) start(_ context.Context, e engineEnv) (running, error) {
	engine := netem.New(e.log)
	return running{Engine: engine, detach: engine.Detach}, nil
}

func (netemBackend) connect(ctx context.Context, e engineEnv, links []link.Spec) (running, error) {
	engine := netem.New(e.log)
	if err := engine.Adopt(ctx, links); err != nil {
		return running{}, errors.Join(err, engine.Detach())
	}
	return running{Engine: engine, detach: engine.Detach}, nil
}
