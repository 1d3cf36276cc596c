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
	Name: "link_flap", Summary: "takes links down and up again and again.",
	Effect:  record.Effect{On: record.OnLinks, Makes: record.Down},
	Docs:    Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, down: 1s, up: 4s}`}, Text: `the links go down first`}}},
	newSpec: func() kindSpec { return new(LinkFlap) },
}

// LinkFlap takes links down and up again and again, all chosen ones together.
type LinkFlap struct {
	LinkSelector `yaml:",inline"`
	// Down is how long they are down each time, which comes first.
	Down unit.Duration `yaml:"down" json:"down" jsonschema:"required"`
	// Up is how long they are up in between.
	Up unit.Duration `yaml:"up" json:"up" jsonschema:"required"`
}

// minFlap is as often as links can be set: changing all of azure8 takes milliseconds.
const minFlap = unit.Duration(10 * time.Millisecond)

func (f *LinkFlap) check(s Layout, fail failure) {
	f.LinkSelector.check(s, fail)
	for key, d := range map[string]unit.Duration{"down": f.Down, "up": f.Up} {
		if d < minFlap {
			fail(key, "", "%v is too short: the least is %v", d, minFlap)
		}
	}
}

func (f *LinkFlap) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	text := fmt.Sprintf("%%s flapping, %v down, %v up", f.Down, f.Up)
	on, ok := newLinkAction(f.LinkSelector.draw(s, turn, busy, r), text, setDown(true)).(*linkAction)
	if !ok {
		return nil
	}
	return &flapAction{linkAction: *on, down: f.Down.Duration(), up: f.Up.Duration(), done: make(chan struct{})}
}

// flapAction is links that go down and up until they are reverted.
type flapAction struct {
	linkAction
	down, up time.Duration

	cancel  context.CancelFunc
	toggler sync.WaitGroup
	done    chan struct{} // closed when toggling failed
	failed  error
}

func (f *flapAction) apply(ctx context.Context, w *Testbed, p *progress) error {
	if err := f.linkAction.apply(ctx, w, p); err != nil {
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
func (f *flapAction) toggle(ctx context.Context, w *Testbed, p *progress) error {
	down := true
	for {
		stay, change := f.up, f.linkAction.apply
		if down {
			stay, change = f.down, f.linkAction.revert
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

func (f *flapAction) revert(ctx context.Context, w *Testbed, p *progress) error {
	if f.cancel != nil {
		f.cancel()
		f.toggler.Wait()
	}
	return f.linkAction.revert(ctx, w, p)
}

func (f *flapAction) ended() <-chan struct{} { return f.done }
func (f *flapAction) err() error             { return f.failed }
