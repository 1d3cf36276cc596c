package trial

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"skerry/internal/event"
	"skerry/internal/record"
	"skerry/internal/topology"
)

// StoppedEvents is why a trial ended whose events were over.
const StoppedEvents = "events"

// newWorld is what events will act on. Nodes whose disks are to be full get disks of their
// own, before anything starts on them.
func (r *run) newWorld() error {
	e := r.Cell.Experiment
	r.world = &event.World{Host: r.lab.Host, Member: r.lab.Member, Exe: r.Exe}
	if err := r.world.MountDisks(event.Disks(e.Events, e.Stage(r.Database))); err != nil {
		return fmt.Errorf("preparing nodes for events: %w", err)
	}
	return nil
}

// eventsOf returns the trial's events, on the links as they are, nil when it has none and
// nobody can fire one.
func (r *run) eventsOf(ctx context.Context) (*event.Runner, error) {
	var links []topology.Link
	for _, l := range r.lab.Links() {
		links = append(links, topology.Link{ID: l.ID, A: l.A, B: l.B, AB: l.AB, BA: l.BA})
	}
	r.world.Net, r.world.Cluster = event.NewNet(links, shownLinks{r.lab, r.Live}), r.cluster
	e := r.Cell.Experiment
	if len(e.Events) == 0 && r.Live == nil {
		return nil, nil
	}
	return event.NewRunner(event.Config{
		Events: e.Events, Stage: e.Stage(r.Database), World: r.world, Seed: r.Cell.Seed, Record: r.shownEvent,
		Interrupted: func() bool { return ctx.Err() != nil },
	})
}

// happen makes the events happen until the drive has ended, and takes back what is in force.
func (w *watch) happen() {
	err := w.events.Run(w.ctx, w.began)
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil { // also after the drive's end, unlike fail
		w.failed = recordError{err}
		w.session.Stop()
	}
}

// stopAfterEvents ends the drive when the events are over and what was asked for has passed.
func (w *watch) stopAfterEvents(settle time.Duration) {
	select {
	case <-w.events.Quiet():
	case <-w.ctx.Done():
		return
	}
	select {
	case <-time.After(settle):
	case <-w.ctx.Done():
		return
	}
	w.mu.Lock()
	w.eventsOver = true
	w.mu.Unlock()
	w.session.Stop()
}

// quiet tells whether no event is to happen any more.
func (w *watch) quiet() bool {
	if w.events == nil {
		return true
	}
	select {
	case <-w.events.Quiet():
		return true
	default:
		return false
	}
}

// eventFaults are the reasons why a trial is suspect for what became of its events.
func eventFaults(events []record.Event) (reasons []string) {
	for _, e := range events {
		switch e.State {
		case record.EventFailed:
			why, _, _ := strings.Cut(e.Error, "\n") // logs of a database follow
			reasons = append(reasons, fmt.Sprintf("event %d (%s) failed: %s", e.ID, e.Message, why))
		case record.EventSkipped:
			reasons = append(reasons, fmt.Sprintf("event %d (%s) did not happen: %s", e.ID, e.Message, e.Error))
		}
	}
	return reasons
}

// eventLate is how late events began and were reverted, 99th percentile; 0 without events.
func eventLate(events []record.Event) time.Duration {
	var late []time.Duration
	for _, e := range events {
		for _, s := range []*record.Step{e.Apply, e.Revert} {
			if s != nil && s.Began != nil {
				late = append(late, s.Late())
			}
		}
	}
	if len(late) == 0 {
		return 0
	}
	slices.Sort(late)
	return late[int(math.Ceil(0.99*float64(len(late))))-1]
}
