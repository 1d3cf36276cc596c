package trial

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/kernel/realtime"
	"skerry/internal/lab"
	"skerry/internal/load"
	"skerry/internal/record"
	"skerry/internal/topology"
)

// StoppedEvents is why a trial ended whose events were over.
const StoppedEvents = "events"

// happenings are a trial's events, and those that an onlooker fires.
type happenings struct {
	*event.Runner
	stage    event.Layout
	database database.Database
	urgent   *realtime.Process
	carried  carriage
}

// happenings returns the trial's events, on the links as they are, nil when it has none and
// nobody can fire one.
func (m measuring) happenings(ctx context.Context) (*happenings, error) {
	var links []topology.Link
	for _, l := range m.ground.lab.Links() {
		links = append(links, topology.Link{ID: l.ID, A: l.A, B: l.B, AB: l.AB, BA: l.BA})
	}
	world := m.ground.world
	world.Links, world.Cluster = event.NewLinkLayers(links, shownLinks{m.ground.lab, m.tell.live}), m.ground.cluster
	if err := world.Links.TrackAccounts(ctx, m.ground.lab.Stats); err != nil {
		return nil, fmt.Errorf("reading the account of the links: %w", err)
	}
	e := m.cell.Experiment
	if len(e.Events) == 0 && m.tell.live == nil {
		return nil, nil
	}
	stage := e.Stage(m.database)
	if err := onReal(&stage, e.Events, m.ground.lab.Real()); err != nil {
		return nil, err
	}
	h := &happenings{stage: stage, database: m.database, urgent: m.urgent}
	world.Carried = h.carried.of
	var err error
	h.Runner, err = event.NewRunner(event.Config{
		Events: e.Events, Stage: h.stage, World: world, Seed: m.cell.Seed, Record: m.tell.happened,
		Interrupted: func() bool { return ctx.Err() != nil },
	})
	return h, err
}

// onReal has a stage know which links are real, and refuses events that say what one of them becomes: what
// was checked before the start went by the places that nodes were to have.
func onReal(stage *event.Layout, events []event.Event, links []lab.Link) (err error) {
	stage.RealLinks = map[string]bool{}
	for _, k := range links {
		stage.RealLinks[k.ID] = true
	}
	if len(links) == 0 {
		return nil
	}
	event.Check(events, *stage, 0, func(path, hint, format string, args ...any) {
		if err == nil {
			err = advice.With(fmt.Errorf("events%s: %w", path, fmt.Errorf(format, args...)), "%s", hint)
		}
	})
	return err
}

// fire makes an event happen that an onlooker asks for.
func (h *happenings) fire(ctx context.Context, e event.Event) (record.Event, error) {
	if err := event.CheckFired(e, h.stage, h.database.Name(), h.database.Capabilities()); err != nil {
		return record.Event{}, err
	}
	return h.Fire(ctx, e, record.SourceUI)
}

// observe tells the events what clients saw in a second. The process may have new threads.
func (h *happenings) observe(i load.Interval) {
	h.urgent.Raise()
	h.ObserveGoodput(i.T, float64(i.OK)/i.Length.Seconds())
}

// happen makes the events happen until the drive has ended, and takes back what is in force.
func (w *watch) happen() {
	w.events.urgent.Raise()
	defer w.events.urgent.Restore()
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
	case <-w.events.Done():
	case <-w.ctx.Done():
		return
	}
	if linger.For(w.ctx, settle) != nil {
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
	case <-w.events.Done():
		return true
	default:
		return false
	}
}
