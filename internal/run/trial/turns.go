package trial

import (
	"context"
	"sync"
	"time"
)

// Turns keep trials that run at the same time from disturbing what they measure: at any moment
// some of them set up, or some measure, and never both.
//
//	trial 1  │ sets up │ waits │ measures │ waits │ ends, sets the next up ...
//	trial 2  │ sets up         │ measures         │ ends ...
//
// Forming a cluster and loading a table take all processors that there are, and a measurement
// beside them would tell of that. Those that wait hold up nobody: a trial that waits to measure
// has set up, and one that waits to set up does not measure. A nil *Turns lets everybody do
// everything.
type Turns struct {
	mu                 sync.Mutex
	setting, measuring int
	changed            chan struct{} // closed, and replaced, when a number became less
}

// NewTurns makes turns of trials that are to run at the same time.
func NewTurns() *Turns { return &Turns{changed: make(chan struct{})} }

// turn is where one trial stands. Its methods are called in their order, the last one always.
type turn struct {
	of     *Turns
	at     *int // the number that it counts in, nil while it waits
	waited time.Duration
}

// setUp waits until nobody measures.
func (t *turn) setUp(ctx context.Context) error {
	if t.of == nil {
		return nil
	}
	return t.change(ctx, &t.of.setting, &t.of.measuring)
}

// measure waits until nobody sets up.
func (t *turn) measure(ctx context.Context) error {
	if t.of == nil {
		return nil
	}
	return t.change(ctx, &t.of.measuring, &t.of.setting)
}

// leave ends the trial's turn.
func (t *turn) leave() {
	if t.of == nil {
		return
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.out()
}

// change leaves the number that the trial counts in, waits until the others' is 0, and counts
// in to. Where ctx ends first, it counts in none.
func (t *turn) change(ctx context.Context, to, others *int) error {
	begun := time.Now()
	defer func() { t.waited += time.Since(begun) }()
	t.of.mu.Lock()
	t.out()
	for *others > 0 {
		changed := t.of.changed
		t.of.mu.Unlock()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
		t.of.mu.Lock()
	}
	*to++
	t.at = to
	t.of.mu.Unlock()
	return nil
}

// out is called with the lock held.
func (t *turn) out() {
	if t.at == nil {
		return
	}
	*t.at--
	t.at = nil
	close(t.of.changed)
	t.of.changed = make(chan struct{})
}
