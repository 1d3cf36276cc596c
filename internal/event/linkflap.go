package event

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/base/unit"
	"skerry/internal/record"
)

var linkFlapKind = Kind{
	Name: "link_flap", Says: "takes links down and up again and again.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Down},
	Docs:   Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, down: 1s, up: 4s}`}, Says: `the links go down first`}}},
	spec:   func() spec { return new(Flap) },
}

// Flap takes links down and up again and again, all chosen ones together.
type Flap struct {
	Links `yaml:",inline"`
	// Down is how long they are down each time, which comes first.
	Down unit.Duration `yaml:"down" json:"down" jsonschema:"required"`
	// Up is how long they are up in between.
	Up unit.Duration `yaml:"up" json:"up" jsonschema:"required"`
}

// leastFlap is as often as links can be set: changing all of azure8 takes milliseconds.
const leastFlap = unit.Duration(10 * time.Millisecond)

func (f *Flap) check(s Stage, fail failure) {
	f.Links.check(s, fail)
	for key, d := range map[string]unit.Duration{"down": f.Down, "up": f.Up} {
		if d < leastFlap {
			fail(key, "", "%v is too short: the least is %v", d, leastFlap)
		}
	}
}

func (f *Flap) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	text := fmt.Sprintf("%%s flapping, %v down, %v up", f.Down, f.Up)
	on, ok := newOnLinks(f.Links.draw(s, turn, busy, r), text, setDown(true)).(*onLinks)
	if !ok {
		return nil
	}
	return &flapping{onLinks: *on, down: f.Down.Duration(), up: f.Up.Duration(), done: make(chan struct{})}
}

// flapping is links that go down and up until they are reverted.
type flapping struct {
	onLinks
	down, up time.Duration

	cancel  context.CancelFunc
	toggler sync.WaitGroup
	done    chan struct{} // closed when toggling failed
	failed  error
}

func (f *flapping) apply(ctx context.Context, w *World, p *progress) error {
	if err := f.onLinks.apply(ctx, w, p); err != nil {
		return err
	}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx)) // till it is reverted
	f.toggler.Go(func() {
		if err := f.toggle(ctx, w, p); err != nil && ctx.Err() == nil {
			f.failed = err
			close(f.done)
		}
	})
	return nil
}

// toggle begins with links that are down.
func (f *flapping) toggle(ctx context.Context, w *World, p *progress) error {
	down := true
	for {
		stay, change := f.up, f.onLinks.apply
		if down {
			stay, change = f.down, f.onLinks.revert
		}
		if linger.For(ctx, stay) != nil {
			return nil
		}
		if err := change(ctx, w, p); err != nil {
			return err
		}
		down = !down
	}
}

func (f *flapping) revert(ctx context.Context, w *World, p *progress) error {
	if f.cancel != nil {
		f.cancel()
		f.toggler.Wait()
	}
	return f.onLinks.revert(ctx, w, p)
}

func (f *flapping) ended() <-chan struct{} { return f.done }
func (f *flapping) err() error             { return f.failed }
