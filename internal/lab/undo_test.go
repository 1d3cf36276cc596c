package lab

import (
	"context"
	"errors"
	"testing"

	"skerry/internal/link"
)

// failing is a backend that fails where it is told to.
type failing struct {
	userspaceBackend
	inStart, inCreate error
	cancel            context.CancelFunc
}

func (f failing) start(ctx context.Context, e engineEnv) (running, error) {
	if f.inStart != nil {
		return running{}, f.inStart
	}
	r, err := f.userspaceBackend.start(ctx, e)
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

func TestUpFailsAndUndoes(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	tests := map[string]struct {
		ctx     context.Context
		backend failing
		want    error
	}{
		"no engine":           {t.Context(), failing{inStart: boom}, boom},
		"no links":            {t.Context(), failing{inCreate: boom}, boom},
		"interrupted":         {ctx, failing{cancel: cancel}, context.Canceled},
		"interrupted at once": {ctx, failing{}, context.Canceled},
	}
	for _, name := range []string{"no engine", "no links", "interrupted", "interrupted at once"} {
		t.Run(name, func(t *testing.T) {
			tt := tests[name]
			c := config(t, "fails")
			c.backends = []backend{tt.backend}
			if _, err := Up(tt.ctx, c); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			noTraces(t, c)
		})
	}
}
