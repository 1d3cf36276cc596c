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

// Config is what a Runner is given.
type Config struct {
	Events []Event
	Stage  Layout
	World  *Testbed
	// Seed fixes every random choice.
	Seed uint64
	// Record takes an event each time that it gets on.
	Record func(record.Event) error
	// Interrupted tells whether the trial is to end at once: taking events back does not
	// take long then. Nil is never.
	Interrupted func() bool
}

// Runner makes a trial's events happen. Its own goroutine alone decides what happens when;
// each occurrence has another one, which tells it how far it is.
type Runner struct {
	Config
	entries  []*entryState
	notes    chan note
	samples  chan goodputSample
	done     chan struct{} // closed when nothing is to happen any more
	fired    chan fireRequest
	closing  chan struct{} // closed when nothing can be fired any more
	returned chan struct{} // closed when Run has returned

	zero    time.Time
	queue   []pending // by due
	steady  steadiness
	running sync.WaitGroup
	log     *eventLog
}

// entryState is an entry and what it waits for.
type entryState struct {
	*entry
	began   bool            // its series has begun, or its only occurrence
	series  time.Duration   // when
	armed   []time.Duration // since when it waits for a steady goodput, one for each time
	active  int             // occurrences that are not over
	waiting int             // in the queue
}

// pending is an occurrence that is due at a time since the measurement began.
type pending struct {
	due   time.Duration
	entry int
}

// note is what an occurrence tells: its change is complete, was taken back, or is over: no
// longer under way, and not to be taken back before the trial ends.
type note struct {
	entry                     int
	at                        time.Duration
	completed, reverted, over bool
}

// NewRunner returns a runner of events that Check found nothing wrong with.
func NewRunner(c Config) (*Runner, error) {
	r := &Runner{Config: c, notes: make(chan note), samples: make(chan goodputSample), done: make(chan struct{}), fired: make(chan fireRequest), closing: make(chan struct{}), returned: make(chan struct{}), log: newEventLog()}
	for i, e := range c.Events {
		x, err := newEntry(e, i, c.Stage, c.Seed)
		if err != nil {
			return nil, err
		}
		r.entries = append(r.entries, &entryState{entry: x})
	}
	return r, nil
}

// Done is closed when nothing is to happen any more before the trial ends.
func (r *Runner) Done() <-chan struct{} { return r.done }

// Events are those that have happened so far, in the order in which they began.
func (r *Runner) Events() []record.Event { return r.log.all() }

// ObserveGoodput takes what clients saw in a second of the measurement, while Run runs.
func (r *Runner) ObserveGoodput(t int64, goodput float64) {
	select {
	case r.samples <- goodputSample{t, goodput}:
	case <-r.returned:
	}
}

// Run makes the events happen, from zero on, until ctx ends; then it takes back whatever
// is in force. What goes wrong with an event is told by that event: an error is one of
// recording.
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

// waitOccurrences waits for the occurrences to take back what they did.
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

// now is the time since the measurement began.
func (r *Runner) now() time.Duration { return time.Since(r.zero) }

// trigger puts an entry's first occurrence into the queue, or the next of one that follows
// another.
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

// enqueue keeps the queue in order: by time, then by place in the list.
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

// startDue begins what is due.
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

// handleNote hears what an occurrence tells, for itself and for the entry below.
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

// addSample lets those go on that wait for a steady goodput.
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

// hasPending tells whether anything is to happen yet.
func (r *Runner) hasPending() bool {
	above := false // whether the entry above may yet tell something
	alive := false
	for _, e := range r.entries {
		above = e.waiting+e.active+len(e.armed) > 0 || e.When != "" && above
		alive = alive || above
	}
	return alive
}

// recordSkipped records what never began, and why.
func (r *Runner) recordSkipped() {
	for _, e := range r.entries {
		if e.turns > 0 {
			continue
		}
		why := "the trial ended before it was due"
		switch e.When {
		case whenSteady:
			why = "the goodput did not become steady"
		case whenCompleted, whenReverted:
			why = fmt.Sprintf("the event above was never %s", e.When)
		}
		if e.began && e.waiting > 0 {
			why = "the trial ended before it was due"
		}
		o := &occurrence{r: r, entry: e.entry}
		o.skip(why)
	}
}

// goodputSample is what clients saw in one second of the measurement.
type goodputSample struct {
	t       int64
	goodput float64 // operations a second that ended ok
}

// A goodput is steady when the mean of steadyWindow seconds differs from that of the
// steadyWindow seconds before by steadyShare of that at most, and none of them was without
// operations.
const (
	steadyWindow = 5
	steadyShare  = 0.1
)

// steadiness keeps the last seconds that matter.
type steadiness struct {
	last []goodputSample
}

func (s *steadiness) add(x goodputSample) {
	s.last = append(s.last, x)
	if n := len(s.last); n > 2*steadyWindow {
		s.last = s.last[n-2*steadyWindow:]
	}
}

// steadySince tells whether the goodput is steady, in seconds that all began later than that.
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
