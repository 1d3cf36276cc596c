package trial

import (
	"context"
	"sync"
	"time"
)

// PhaseScheduler keep trials that run at the same time from disturbing what they measure: at any moment
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
type PhaseScheduler struct {
	mu                            sync.Mutex
	settingUp, probing, measuring int
	waitingToProbe                int           // wait to probe
	changed                       chan struct{} // closed, and replaced, when a number became less
	labs                          labs
}

// NewPhaseScheduler makes turns of trials that are to run at the same time.
func NewPhaseScheduler() *PhaseScheduler { return &PhaseScheduler{changed: make(chan struct{})} }

// trialPhase is where one trial stands. Its methods are called in their order, the last one always.
type trialPhase struct {
	scheduler *PhaseScheduler
	counter   *int // the number that it counts in, nil while it waits
	waited    time.Duration
}

// enterSetUp waits until nobody probes or measures.
func (t *trialPhase) enterSetUp(ctx context.Context) error {
	if t.scheduler == nil {
		return nil
	}
	return t.enter(ctx, &t.scheduler.settingUp, func(of *PhaseScheduler) bool { return of.probing+of.measuring == 0 })
}

// enterProbe waits until nobody does anything else.
func (t *trialPhase) enterProbe(ctx context.Context) error {
	if t.scheduler == nil {
		return nil
	}
	t.scheduler.mu.Lock()
	t.scheduler.waitingToProbe++
	t.scheduler.mu.Unlock()
	defer func() {
		t.scheduler.mu.Lock()
		t.scheduler.decrement(&t.scheduler.waitingToProbe)
		t.scheduler.mu.Unlock()
	}()
	return t.enter(ctx, &t.scheduler.probing, func(of *PhaseScheduler) bool { return of.settingUp+of.probing+of.measuring == 0 })
}

// enterMeasure waits until nobody sets up, probes, or wants to probe.
func (t *trialPhase) enterMeasure(ctx context.Context) error {
	if t.scheduler == nil {
		return nil
	}
	return t.enter(ctx, &t.scheduler.measuring, func(of *PhaseScheduler) bool { return of.settingUp+of.probing+of.waitingToProbe == 0 })
}

// leave ends the trial's turn.
func (t *trialPhase) leave() {
	if t.scheduler == nil {
		return
	}
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	t.leaveCounter()
}

// enter leaves the number that the trial counts in, waits until it may count in to, and does. Where
// ctx ends first, it counts in none.
func (t *trialPhase) enter(ctx context.Context, to *int, may func(*PhaseScheduler) bool) error {
	begun := time.Now()
	defer func() { t.waited += time.Since(begun) }()
	t.scheduler.mu.Lock()
	t.leaveCounter()
	for !may(t.scheduler) {
		changed := t.scheduler.changed
		t.scheduler.mu.Unlock()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
		t.scheduler.mu.Lock()
	}
	*to++
	t.counter = to
	t.scheduler.mu.Unlock()
	return nil
}

// leaveCounter is called with the lock held.
func (t *trialPhase) leaveCounter() {
	if t.counter == nil {
		return
	}
	t.scheduler.decrement(t.counter)
	t.counter = nil
}

// decrement takes one from a number, with the lock held, and tells those that wait.
func (t *PhaseScheduler) decrement(number *int) {
	*number--
	close(t.changed)
	t.changed = make(chan struct{})
}
