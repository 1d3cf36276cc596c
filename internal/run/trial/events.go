package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/kernel/realtime"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/record"
	"skerry/internal/topology"
)

// StoppedEvents is the stop reason of a trial whose events were over.
const StoppedEvents = "events"

// occurrences runs a trial's events and those that a user fires.
type occurrences struct {
	*event.Runner
	layout   event.Layout
	database database.Database
	priority *realtime.Process
	traffic  recentTraffic
}

// newOccurrences returns nil if the trial has no events and users cannot fire any.
func (m measuring) newOccurrences(ctx context.Context) (*occurrences, error) {
	var links []topology.Link
	for _, l := range m.env.lab.Links() {
		links = append(links, topology.Link{ID: l.ID, A: l.A, B: l.B, AB: l.AB, BA: l.BA})
	}
	world := m.env.testbed
	world.Links, world.Cluster = event.NewLinkLayers(links, liveLinks{m.env.lab, m.report.live}), m.env.cluster
	if err := world.Links.TrackAccounts(ctx, m.env.lab.Stats); err != nil {
		return nil, fmt.Errorf("read link accounts: %w", err)
	}
	e := m.cell.Experiment
	if len(e.Events) == 0 && m.report.live == nil {
		return nil, nil
	}
	stage := e.EventLayout(m.database)
	if err := checkRealLinks(&stage, e.Events, m.env.lab.RealLinks()); err != nil {
		return nil, err
	}
	h := &occurrences{layout: stage, database: m.database, priority: m.priority}
	world.Carried = h.traffic.carriedBy
	var err error
	h.Runner, err = event.NewRunner(event.Config{
		Events: e.Events, Stage: h.layout, World: world, Seed: m.cell.Seed, Record: m.report.recordEvent,
		Interrupted: func() bool { return ctx.Err() != nil },
	})
	return h, err
}

// checkRealLinks adds the real links to layout and rejects events that replace the quality of one. The
// check before the run only had the planned placement.
func checkRealLinks(stage *event.Layout, events []event.Event, links []lab.Link) (err error) {
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

// fire runs an event that a user requested.
func (h *occurrences) fire(ctx context.Context, e event.Event) (record.Event, error) {
	if err := event.CheckFired(e, h.layout, h.database.Name(), h.database.Capabilities()); err != nil {
		return record.Event{}, err
	}
	return h.Fire(ctx, e, record.SourceUI)
}

// observeSecond passes the clients' goodput to the events. It raises the priority again because the process
// may have new threads.
func (h *occurrences) observeSecond(i load.Interval) {
	h.priority.Raise()
	h.ObserveGoodput(i.T, float64(i.OK)/i.Length.Seconds())
}

// runEvents runs the events until the drive ends, then reverts those in force.
func (w *watch) runEvents() {
	w.events.priority.Raise()
	defer w.events.priority.Restore()
	err := w.events.Run(w.ctx, w.began)
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil { // even after the end of the drive, unlike fail
		w.failed = recordError{err}
		w.session.Stop()
	}
}

// stopAfterEvents stops the drive once all events are over and settle has passed.
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

// eventsDone reports whether no more events will happen.
func (w *watch) eventsDone() bool {
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

// recentWindow is the period over which the traffic before an event is measured: long enough for links with
// few operations, shorter than the spacing of events.
const recentWindow = 5 * time.Second

// recentTraffic keeps the link counters of the last seconds.
type recentTraffic struct {
	mu   sync.Mutex
	read []trafficReading // oldest first
}

// trafficReading holds bytes per link, both directions together, and their sum.
type trafficReading struct {
	at    time.Time
	bytes map[string]uint64
	all   uint64
}

// add appends a reading and drops those older than recentWindow.
func (c *recentTraffic) add(at time.Time, links []link.Stats) {
	next := trafficReading{at: at, bytes: make(map[string]uint64, len(links))}
	for _, s := range links {
		n := s.AB.Bytes + s.BA.Bytes
		next.bytes[s.ID] = n
		next.all += n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, next)
	for len(c.read) > 2 && at.Sub(c.read[1].at) >= recentWindow {
		c.read = c.read[1:]
	}
}

// carriedBy returns the recent traffic of some links, nil if there are fewer than two readings.
func (c *recentTraffic) carriedBy(ids []string) *record.Carried {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.read) < 2 {
		return nil
	}
	first, last := c.read[0], c.read[len(c.read)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return nil
	}
	n := uint64(0)
	for _, id := range ids {
		n += last.bytes[id] - first.bytes[id]
	}
	out := record.Carried{Rate: float64(n) / took}
	if all := last.all - first.all; all > 0 {
		out.Share = float64(n) / float64(all)
	}
	return &out
}

// drift changes the links along their profiles while a trial measures.
type drift struct {
	links []experiment.LinkProfile
	every time.Duration
}

// newDrift returns nil if the experiment has no drift.
func newDrift(e experiment.Experiment, l *lab.Lab) (*drift, error) {
	if e.Drift == nil {
		return nil, nil
	}
	links, err := e.LinkProfiles(l.Topology())
	if err != nil {
		return nil, err
	}
	return &drift{links: links, every: e.Drift.Every.Duration()}, nil
}

// setDriftStart sets the links to the start of their drift, for the probes and the warm-up.
func setDriftStart(ctx context.Context, e experiment.Experiment, l *lab.Lab) error {
	d, err := newDrift(e, l)
	if d == nil || err != nil {
		return err
	}
	changes := make([]link.Change, len(d.links))
	for i, p := range d.links {
		ab, ba := p.BeforeMeasurement()
		changes[i] = link.Change{ID: p.ID, AB: &ab, BA: &ba}
	}
	if err := l.Set(ctx, changes); err != nil {
		return fmt.Errorf("set links to the start of their drift: %w", err)
	}
	return nil
}

// follow sets the links to their profiles from zero until ctx ends. Each step only touches links that
// change. It is confirmed concurrently with the next steps, unless an earlier confirmation is still
// running; observed receives the result.
func (d *drift) follow(ctx context.Context, net *event.LinkLayers, report reporter, zero time.Time, observed func(*record.Observed)) error {
	tick := time.NewTicker(d.every)
	defer tick.Stop()
	set := make([]directions, len(d.links))
	var confirming errgroup.Group
	confirming.SetLimit(1)
	for {
		now := time.Since(zero)
		if changes := d.changes(now, set); len(changes) > 0 {
			update, err := net.SetBase(ctx, changes)
			if err != nil {
				if ctx.Err() != nil {
					return confirming.Wait()
				}
				return errors.Join(fmt.Errorf("apply link drift: %w", err), confirming.Wait())
			}
			step := record.Event{T: now.Seconds(), Kind: "drift", Message: fmt.Sprintf("%d links changed", len(changes))}
			begun := confirming.TryGo(func() error {
				step.Observed = net.Confirm(ctx, zero, update)
				observed(step.Observed)
				return report.writeLine(step)
			})
			if !begun {
				if err := report.writeLine(step); err != nil {
					return errors.Join(err, confirming.Wait())
				}
			}
		}
		select {
		case <-ctx.Done():
			return confirming.Wait()
		case <-tick.C:
		}
	}
}

type directions struct{ ab, ba link.Quality }

// changes returns the links whose profile at t differs from set, and updates set.
func (d *drift) changes(t time.Duration, set []directions) []link.Change {
	var out []link.Change
	for i, p := range d.links {
		next := directions{p.AB.At(t), p.BA.At(t)}
		if next != set[i] {
			set[i] = next
			out = append(out, link.Change{ID: p.ID, AB: &next.ab, BA: &next.ba})
		}
	}
	return out
}
