package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/base/progress"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/record"
	"skerry/internal/run/live"
)

// reporter publishes the progress of a trial: to the terminal, to live followers and to the run directory.
type reporter struct {
	progress *progress.Reporter
	label    string
	live     *live.Feed
	writer   *record.TrialWriter
}

func (t reporter) beginTrial(c Config, started time.Time) {
	t.live.BeginTrial(live.Trial{
		ID: c.Cell.ID, Number: c.Number, Repetition: c.Cell.Repetition, Parameters: c.Cell.Parameters,
		Database: c.Database.Name(), Started: started, LimitS: time.Duration(c.Cell.Experiment.Stop.Time).Seconds(),
	})
}

func (t reporter) endTrial(id int, x record.Trial) {
	x.ID = id // only the writer knows it so far
	t.live.EndTrial(x)
}

// setStage shows the current stage in the terminal and the live state.
func (t reporter) setStage(what string) {
	t.progress.Livef("%s: %s", t.label, what)
	t.live.SetStage(what)
}

func (t reporter) setStagef(format string, args ...any) { t.setStage(fmt.Sprintf(format, args...)) }

// writeEvent records an event before the measurement.
func (t reporter) writeEvent(kind, message string) error {
	return t.writeLine(record.Event{Kind: kind, Message: message})
}

// writeLine appends a line to events.jsonl.
func (t reporter) writeLine(e record.Event) error {
	if err := t.writer.Event(e); err != nil {
		return recordError{err}
	}
	return nil
}

// writeSecond records a second of the timeline, of each workload, and its errors.
func (t reporter) writeSecond(row record.Second, pools []record.PoolSecond, failed []record.ErrorSecond) error {
	return errors.Join(t.writer.Second(row), t.writer.PoolSeconds(pools...), t.writer.ErrorSeconds(failed...))
}

// recordEvent publishes an event and appends it to events.jsonl.
func (t reporter) recordEvent(e record.Event) error {
	t.live.AddEvent(e)
	return t.writer.Event(e)
}

// setCloud publishes and records the topology.
func (t reporter) setCloud(l *lab.Lab) error {
	topo := l.Topology()
	c := live.Cloud{Name: topo.Name}
	for _, s := range topo.Sites {
		c.Sites = append(c.Sites, live.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon, Located: s.Located})
	}
	for _, n := range topo.Nodes {
		c.Nodes = append(c.Nodes, live.Node{Name: n.Name, Site: n.Site, Role: string(n.Role), CPU: n.CPU, MemoryBytes: n.Memory})
	}
	for _, l := range l.Links() {
		c.Links = append(c.Links, live.NewLink(l.ID, l.A, l.B, totalQuality(l, l.AB), totalQuality(l, l.BA)))
	}
	t.live.SetCloud(c)
	if err := t.writer.Topology(topo); err != nil {
		return recordError{err}
	}
	return nil
}

// publishLinks publishes the quality of all links.
func (t reporter) publishLinks(l *lab.Lab) {
	if t.live == nil {
		return
	}
	var all []link.Change
	for _, l := range l.Links() {
		ab, ba := totalQuality(l, l.AB), totalQuality(l, l.BA)
		all = append(all, link.Change{ID: l.ID, AB: &ab, BA: &ba})
	}
	t.live.ChangeLinks(all)
}

// totalQuality is the quality of one direction on top of the network between machines.
func totalQuality(k lab.Link, q link.Quality) link.Quality {
	q.Latency += k.Way
	return q
}

// publishRTTs publishes the probed round trips.
func (t reporter) publishRTTs(links []record.LinkFidelity) {
	rtt := map[string]float64{}
	for _, l := range links {
		if l.Answered {
			rtt[l.ID] = l.RTTMS
		}
	}
	t.live.SetRTTs(rtt)
}

// liveLinks are the lab's links; it publishes every change.
type liveLinks struct {
	lab  *lab.Lab
	live *live.Feed
}

func (s liveLinks) Set(ctx context.Context, changes []link.Change) error {
	if err := s.lab.Set(ctx, changes); err != nil {
		return err
	}
	s.live.ChangeLinks(s.addReal(changes))
	return nil
}

// addReal converts changes of real links into their total quality.
func (s liveLinks) addReal(changes []link.Change) []link.Change {
	for _, k := range s.lab.RealLinks() {
		for i, c := range changes {
			if c.ID != k.ID {
				continue
			}
			for _, q := range []**link.Quality{&c.AB, &c.BA} {
				if *q != nil {
					sum := totalQuality(k, **q)
					*q = &sum
				}
			}
			changes[i] = c
		}
	}
	return changes
}

func (s liveLinks) Carrier(id string, up bool) error {
	if err := s.lab.Carrier(id, up); err != nil {
		return err
	}
	s.live.SetCarrier(id, up)
	return nil
}
