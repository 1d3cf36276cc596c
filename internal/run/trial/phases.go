package trial

import (
	"context"
	"sync"
	"time"
)

// PhaseScheduler keeps concurrent trials from disturbing each other. At any moment some trials set up, or
// one probes its links, or some measure.
//
//	trial 1  │ sets up │ waits │ probes │ waits    │ measures │ waits │ ends, sets the next up ...
//	trial 2  │ sets up         │ waits  │ probes   │ measures         │ ends ...
//
// Forming a cluster and loading a table use all processors, which would distort a measurement. So would the
// packet trains of bandwidth probes. There is no deadlock: a trial that waits to probe or measure is not
// setting up, and one that waits to set up is not measuring. Measurements begin when no trial waits to
// probe, so that trials that set up together measure together. A nil *PhaseScheduler admits every phase at
// once.
type PhaseScheduler struct {
	mu sync.Mutex
	// number of trials in each phase
	settingUp, probing, measuring int
	waitingToProbe                int
	changed                       chan struct{} // closed and replaced when a number decreases
	labs                          labs
}

func NewPhaseScheduler() *PhaseScheduler { return &PhaseScheduler{changed: make(chan struct{})} }

// trialPhase is the current phase of one trial. Its enter methods are called in order; leave is always
// called last.
type trialPhase struct {
	scheduler *PhaseScheduler
	counter   *int // of the current phase, nil while the trial waits
	waited    time.Duration
}

// enterSetUp waits until no trial probes or measures.
func (t *trialPhase) enterSetUp(ctx context.Context) error {
	if t.scheduler == nil {
		return nil
	}
	return t.enter(ctx, &t.scheduler.settingUp, func(of *PhaseScheduler) bool { return of.probing+of.measuring == 0 })
}

// enterProbe waits until all other trials are idle.
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

// enterMeasure waits until no trial sets up, probes, or waits to probe.
func (t *trialPhase) enterMeasure(ctx context.Context) error {
	if t.scheduler == nil {
		return nil
	}
	return t.enter(ctx, &t.scheduler.measuring, func(of *PhaseScheduler) bool { return of.settingUp+of.probing+of.waitingToProbe == 0 })
}

// leave ends the trial's last phase.
func (t *trialPhase) leave() {
	if t.scheduler == nil {
		return
	}
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	t.leaveCounter()
}

// enter leaves the current phase, waits until admitted returns true, and enters the next phase. If ctx ends
// first, the trial is in no phase.
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

// leaveCounter requires the lock.
func (t *trialPhase) leaveCounter() {
	if t.counter == nil {
		return
	}
	t.scheduler.decrement(t.counter)
	t.counter = nil
}

// decrement requires the lock. It wakes waiting trials.
func (t *PhaseScheduler) decrement(number *int) {
	*number--
	close(t.changed)
	t.changed = make(chan struct{})
}
