package lab

import (
	"context"
	"errors"
	"testing"

	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/local"
)

// failing is an engine that fails at a given call.
type failing struct {
	emulator.Kind
	inStart, inCreate error
	cancel            context.CancelFunc
}

func (f failing) Start(ctx context.Context, e emulator.Env) (emulator.RunningEngine, error) {
	if f.inStart != nil {
		return emulator.RunningEngine{}, f.inStart
	}
	r, err := f.Kind.Start(ctx, e)
	if err != nil {
		return r, err
	}
	r.Engine = failingEngine{r.Engine, f}
	return r, err
}

type failingEngine struct {
	link.Engine
	failing
}

func (f failingEngine) Create(ctx context.Context, specs []link.Spec) error {
	err := f.Engine.Create(ctx, specs)
	if f.cancel != nil {
		f.cancel()
	}
	return errors.Join(err, f.inCreate)
}

func TestFailedUpCleansUp(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	tests := map[string]struct {
		ctx    context.Context
		engine failing
		want   error
	}{
		"no engine":               {t.Context(), failing{inStart: boom}, boom},
		"no links":                {t.Context(), failing{inCreate: boom}, boom},
		"interrupted":             {ctx, failing{cancel: cancel}, context.Canceled},
		"interrupted immediately": {ctx, failing{}, context.Canceled},
	}
	for _, name := range []string{"no engine", "no links", "interrupted", "interrupted immediately"} {
		t.Run(name, func(t *testing.T) {
			tt := tests[name]
			c := config(t, "fails")
			tt.engine.Kind = userspaceKind(t)
			c.Machine = localOf(t, c, tt.engine)
			if _, err := Up(tt.ctx, c); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			noTraces(t, c)
		})
	}
}

// userspaceKind is the engine that is available everywhere.
func userspaceKind(t *testing.T) emulator.Kind {
	t.Helper()
	k, err := emulator.Find(emulator.Userspace, emulator.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// localOf is this machine for a lab, with that engine.
func localOf(t *testing.T, c Config, k emulator.Kind) machine.Machine {
	t.Helper()
	m, err := local.New(local.Config{State: c.StateDir, Data: c.DataDir, Exe: c.Exe, Engines: []emulator.Kind{k}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
