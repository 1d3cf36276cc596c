package trial

import (
	"context"
	"sync"
	"time"
)

// Turns keep trials that run at the same time from disturbing what they measure: at any moment
// some of them set up, or one probes its links, or some measure.
//
//	trial 1  │ sets up │ waits │ probes │ waits    │ measures │ waits │ ends, sets the next up ...
//	trial 2  │ sets up         │ waits  │ probes   │ measures         │ ends ...
//
// Forming a cluster and loading a table take all processors that there are, and a measurement
// beside them would tell of that. So would the trains of packets by which bandwidth is probed, of a
// measurement and of each other. Those that wait hold up nobody: a trial that waits to probe or to
// measure has set up, and one that waits to set up does not measure. Measurements begin when nobody
// is left that wants to probe, so that trials that have set up together measure together. A nil
// *Turns lets everybody do everything.
type Turns struct {
	mu                          sync.Mutex
	setting, probing, measuring int
	wanting                     int           // wait to probe
	changed                     chan struct{} // closed, and replaced, when a number became less
	labs                        labs
}

// NewTurns makes turns of trials that are to run at the same time.
func NewTurns() *Turns { return &Turns{changed: make(chan struct{})} }

// turn is where one trial stands. Its methods are called in their order, the last one always.
type turn struct {
	of     *Turns
	at     *int // the number that it counts in, nil while it waits
	waited time.Duration
}

// setUp waits until nobody probes or measures.
func (t *turn) setUp(ctx context.Context) error {
	if t.of == nil {
		return nil
	}
	return t.change(ctx, &t.of.setting, func(of *Turns) bool { return of.probing+of.measuring == 0 })
}

// probe waits until nobody does anything else.
func (t *turn) probe(ctx context.Context) error {
	if t.of == nil {
		return nil
	}
	t.of.mu.Lock()
	t.of.wanting++
	t.of.mu.Unlock()
	defer func() {
		t.of.mu.Lock()
		t.of.less(&t.of.wanting)
		t.of.mu.Unlock()
	}()
	return t.change(ctx, &t.of.probing, func(of *Turns) bool { return of.setting+of.probing+of.measuring == 0 })
}

// measure waits until nobody sets up, probes, or wants to probe.
func (t *turn) measure(ctx context.Context) error {
	if t.of == nil {
		return nil
	}
	return t.change(ctx, &t.of.measuring, func(of *Turns) bool { return of.setting+of.probing+of.wanting == 0 })
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

// change leaves the number that the trial counts in, waits until it may count in to, and does. Where
// ctx ends first, it counts in none.
func (t *turn) change(ctx context.Context, to *int, may func(*Turns) bool) error {
	begun := time.Now()
	defer func() { t.waited += time.Since(begun) }()
	t.of.mu.Lock()
	t.out()
	for !may(t.of) {
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
	t.of.less(t.at)
	t.at = nil
}

// less takes one from a number, with the lock held, and tells those that wait.
func (t *Turns) less(number *int) {
	*number--
	close(t.changed)
	t.changed = make(chan struct{})
}
