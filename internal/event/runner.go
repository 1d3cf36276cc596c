package event

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/record"
)

// Config configures a Runner.
type Config struct {
	Events []Event
	Stage  Layout
	World  *Testbed
	// Seed fixes every random choice.
	Seed uint64
	// Record is called on every state change of an event.
	Record func(record.Event) error
	// Interrupted reports whether the trial must end at once, which shortens the time for
	// reverting. Nil means never.
	Interrupted func() bool
}

// Runner runs a trial's events. One scheduler goroutine owns all decisions. Each occurrence runs in
// its own goroutine and sends notes to the scheduler.
type Runner struct {
	Config
	entries  []*entryState
	notes    chan note
	samples  chan goodputSample
	done     chan struct{} // closed after the last scheduled event
	fired    chan fireRequest
	closing  chan struct{} // closed when events can no longer be fired
	returned chan struct{} // closed when Run has returned

	zero    time.Time
	queue   []pending // sorted by due time
	steady  steadiness
	running sync.WaitGroup
	log     *eventLog
}

// entryState is the scheduling state of an entry.
type entryState struct {
	*entry
	began   bool            // its series, or its only occurrence, has started
	series  time.Duration   // start of the series
	armed   []time.Duration // start times of pending waits for a steady goodput
	active  int             // occurrences that have not ended
	waiting int             // occurrences in the queue
}

// pending is a scheduled occurrence. due counts from the start of the measurement.
type pending struct {
	due   time.Duration
	entry int
}

// note reports the progress of an occurrence: its change is complete, was reverted, or is over. An
// occurrence that lasts to the end of the trial is over once its change is complete.
type note struct {
	entry                     int
	at                        time.Duration
	completed, reverted, over bool
}

// NewRunner returns a runner of events that passed Check.
func NewRunner(c Config) (*Runner, error) {
	r := &Runner{
		Config: c, notes: make(chan note), samples: make(chan goodputSample), fired: make(chan fireRequest),
		done: make(chan struct{}), closing: make(chan struct{}), returned: make(chan struct{}), log: newEventLog(),
	}
	for i, e := range c.Events {
		x, err := newEntry(e, i, c.Stage, c.Seed)
		if err != nil {
			return nil, err
		}
		r.entries = append(r.entries, &entryState{entry: x})
	}
	return r, nil
}

// Done is closed when no event is scheduled before the end of the trial.
func (r *Runner) Done() <-chan struct{} { return r.done }

// Events returns the events so far, in the order of their start.
func (r *Runner) Events() []record.Event { return r.log.all() }

// ObserveGoodput reports the goodput of second t of the measurement, while Run runs.
func (r *Runner) ObserveGoodput(t int64, goodput float64) {
	select {
	case r.samples <- goodputSample{t, goodput}:
	case <-r.returned:
	}
}

// Run runs the events from zero until ctx ends, then reverts those in force. A failed event is
// recorded with its error. Run returns errors of Config.Record only.
func (r *Runner) Run(ctx context.Context, zero time.Time) error {
	defer close(r.returned)
	r.zero = zero
	for i, e := range r.entries {
		switch {
		case e.When == "":
			r.trigger(i, 0)
		case e.When == whenSteady && i == 0:
			e.armed = append(e.armed, 0)
		}
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	var writer errgroup.Group
	writer.Go(func() error {
		err := r.log.write(r.Record)
		if err != nil {
			cancel()
		}
		return err
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for work.Err() == nil {
		if !r.hasPending() {
			r.closeDone()
		}
		timer.Stop()
		if len(r.queue) > 0 {
			timer.Reset(time.Until(r.zero.Add(r.queue[0].due)))
		}
		select {
		case <-work.Done():
		case <-timer.C:
			r.startDue(work)
		case n := <-r.notes:
			r.handleNote(n)
		case s := <-r.samples:
			r.addSample(s)
		case f := <-r.fired:
			r.startFired(work, f)
		}
	}
	close(r.closing)
	r.closeDone()
	r.waitOccurrences()
	r.recordSkipped()
	r.log.close()
	return writer.Wait()
}

// waitOccurrences discards notes and samples until every occurrence has ended.
func (r *Runner) waitOccurrences() {
	done := make(chan struct{})
	go func() {
		r.running.Wait()
		close(done)
	}()
	for {
		select {
		case <-r.notes:
		case <-r.samples:
		case <-done:
			return
		}
	}
}

func (r *Runner) closeDone() {
	select {
	case <-r.done:
	default:
		close(r.done)
	}
}

func (r *Runner) now() time.Duration { return time.Since(r.zero) }

// trigger schedules the first occurrence of an entry, or the next one of an entry that waits for
// the previous entry.
func (r *Runner) trigger(i int, at time.Duration) {
	e := r.entries[i]
	if e.began && e.repeats() || e.exhausted() {
		return
	}
	due := at + e.After.Duration()
	if e.At != nil {
		due = max(due, e.At.Duration())
	}
	e.began, e.series = true, due
	if e.Churn != nil {
		due += exponential(e.rand, e.Churn.Every.Duration())
	}
	r.enqueue(i, due)
}

// enqueue schedules an occurrence. The queue is sorted by time, then by position in the list.
func (r *Runner) enqueue(i int, due time.Duration) {
	e := r.entries[i]
	if e.Until != nil && due >= e.Until.Duration() {
		return
	}
	e.waiting++
	p := pending{due, i}
	at, _ := slices.BinarySearchFunc(r.queue, p, func(a, b pending) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.entry, b.entry), -1)
	})
	r.queue = slices.Insert(r.queue, at, p)
}

func (r *Runner) startDue(ctx context.Context) {
	for len(r.queue) > 0 && r.queue[0].due <= r.now() {
		p := r.queue[0]
		r.queue = r.queue[1:]
		e := r.entries[p.entry]
		e.waiting--
		h := e.draw(p.due - e.series)
		if (e.Every != nil || e.Churn != nil) && !e.exhausted() {
			r.enqueue(p.entry, p.due+h.next)
		}
		if h.action == nil {
			continue
		}
		e.active++
		o := &occurrence{r: r, entry: e.entry, drawnOccurrence: h, due: p.due}
		o.begin()
		r.running.Go(func() { o.run(ctx) })
	}
}

// handleNote processes a note of an occurrence. It may schedule the same entry again, or the next
// one.
func (r *Runner) handleNote(n note) {
	e := r.entries[n.entry]
	if n.over {
		e.active--
		if e.Gap != nil && !e.exhausted() {
			r.enqueue(n.entry, n.at+e.Gap.Duration())
		}
	}
	if n.entry+1 == len(r.entries) {
		return
	}
	switch below := r.entries[n.entry+1]; {
	case below.When == whenCompleted && n.completed, below.When == whenReverted && n.reverted:
		r.trigger(n.entry+1, n.at)
	case below.When == whenSteady && n.over:
		below.armed = append(below.armed, n.at)
	}
}

func (r *Runner) addSample(s goodputSample) {
	r.steady.add(s)
	for i, e := range r.entries {
		e.armed = slices.DeleteFunc(e.armed, func(since time.Duration) bool {
			if !r.steady.steadySince(since) {
				return false
			}
			r.trigger(i, r.now())
			return true
		})
	}
}

func (r *Runner) hasPending() bool {
	above := false // whether the previous entry can still send a note
	alive := false
	for _, e := range r.entries {
		above = e.waiting+e.active+len(e.armed) > 0 || e.When != "" && above
		alive = alive || above
	}
	return alive
}

// recordSkipped records the entries that never happened, with the reason.
func (r *Runner) recordSkipped() {
	for _, e := range r.entries {
		if e.turns > 0 {
			continue
		}
		why := "the trial ended before it was due"
		switch e.When {
		case whenSteady:
			why = "the goodput never became steady"
		case whenCompleted, whenReverted:
			why = fmt.Sprintf("the previous event was never %s", e.When)
		}
		if e.began && e.waiting > 0 {
			why = "the trial ended before it was due"
		}
		o := &occurrence{r: r, entry: e.entry}
		o.skip(why)
	}
}

type goodputSample struct {
	t       int64
	goodput float64 // successful operations per second
}

// The goodput is steady if the means of two consecutive windows of steadyWindow seconds differ by
// at most steadyShare, and no second is without operations.
const (
	steadyWindow = 5
	steadyShare  = 0.1
)

// steadiness holds the samples of the last two windows.
type steadiness struct {
	last []goodputSample
}

func (s *steadiness) add(x goodputSample) {
	s.last = append(s.last, x)
	if n := len(s.last); n > 2*steadyWindow {
		s.last = s.last[n-2*steadyWindow:]
	}
}

// steadySince reports whether the goodput is steady in samples that all start after the given time.
func (s *steadiness) steadySince(at time.Duration) bool {
	if len(s.last) < 2*steadyWindow || time.Duration(s.last[0].t)*time.Second < at {
		return false
	}
	mean := func(seconds []goodputSample) (sum float64) {
		for _, x := range seconds {
			sum += x.goodput / steadyWindow
		}
		return sum
	}
	for _, x := range s.last {
		if x.goodput <= 0 {
			return false
		}
	}
	before, after := mean(s.last[:steadyWindow]), mean(s.last[steadyWindow:])
	return math.Abs(after-before) <= steadyShare*before
}
