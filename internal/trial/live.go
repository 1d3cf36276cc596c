package trial

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/event"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/live"
	"skerry/internal/record"
)

// beginLive tells onlookers which trial this is.
func (r *run) beginLive() {
	e := r.Cell.Experiment
	r.Live.Begin(live.Trial{
		ID: r.Cell.ID, Number: r.Number, Repetition: r.Cell.Repetition, Parameters: r.Cell.Parameters,
		Database: r.Database.Name(), Started: r.result.Started, LimitS: time.Duration(e.Stop.Time).Seconds(),
	})
}

// cloud is the lab as onlookers are told of it.
func (r *run) cloud() live.Cloud {
	t := r.lab.Topology()
	c := live.Cloud{Name: t.Name}
	for _, s := range t.Sites {
		c.Sites = append(c.Sites, live.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon, Located: s.Located})
	}
	for _, n := range t.Nodes {
		c.Nodes = append(c.Nodes, live.Node{Name: n.Name, Site: n.Site, Role: string(n.Role), CPU: n.CPU, MemoryBytes: n.Memory})
	}
	for _, l := range r.lab.Links() {
		c.Links = append(c.Links, live.NewLink(l.ID, l.A, l.B, l.AB, l.BA))
	}
	return c
}

// linksLive tells onlookers what all links are like.
func (r *run) linksLive() {
	if r.Live == nil {
		return
	}
	var all []link.Change
	for _, l := range r.lab.Links() {
		all = append(all, link.Change{ID: l.ID, AB: &l.AB, BA: &l.BA})
	}
	r.Live.Links(all)
}

// probedLive tells onlookers what links were measured with.
func (r *run) probedLive(f record.Fidelity) {
	rtt := map[string]float64{}
	for _, l := range f.Links {
		if l.Answered {
			rtt[l.ID] = l.RTTMS
		}
	}
	r.Live.Measured(rtt)
}

// shownLinks are the lab's links, every change of which onlookers hear of.
type shownLinks struct {
	lab  *lab.Lab
	live *live.Feed
}

// Set implements event.Setter.
func (s shownLinks) Set(ctx context.Context, changes []link.Change) error {
	if err := s.lab.Set(ctx, changes); err != nil {
		return err
	}
	s.live.Links(changes)
	return nil
}

// Carrier implements event.Setter.
func (s shownLinks) Carrier(id string, up bool) error {
	if err := s.lab.Carrier(id, up); err != nil {
		return err
	}
	s.live.Carrier(id, up)
	return nil
}

// shownEvent tells onlookers of a line of events.jsonl, and writes it.
func (r *run) shownEvent(e record.Event) error {
	r.Live.Event(e)
	return r.Writer.Event(e)
}

// fire makes an event happen that an onlooker asks for.
func (w *watch) fire(ctx context.Context, e event.Event) (record.Event, error) {
	can := w.Database.Capabilities()
	if err := event.CheckFired(e, w.Cell.Experiment.Stage(w.Database), w.Database.Name(), can); err != nil {
		return record.Event{}, err
	}
	return w.events.Fire(ctx, e, record.SourceUI)
}

// byHand is why a trial is suspect in which events were fired that the experiment does not
// have: it is no repetition of the others.
func byHand(events []record.Event) []string {
	n := 0
	for _, e := range events {
		if e.Source != "" {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return []string{"an event was fired by hand"}
	}
	return []string{fmt.Sprintf("%d events were fired by hand", n)}
}

// resultLive tells onlookers how the trial ended.
func (r *run) resultLive() {
	t := r.result
	r.Live.End(live.Result{ID: r.Cell.ID, State: t.State, Error: t.Error, Goodput: t.Goodput, Verdict: t.Verdict.State})
}
