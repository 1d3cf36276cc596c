package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"skerry/internal/event"
	"skerry/internal/evidence/warnings"
	"skerry/internal/link"
	"skerry/internal/record"
)

// minLinkInterval is the shortest interval between messages about links that change continuously. A single
// event is published at once.
const minLinkInterval = 250 * time.Millisecond

// Fire fires an event in the trial that measures.
type Fire func(context.Context, event.Event) (record.Event, error)

// ErrNotMeasuring means that no trial can run an event at the moment.
var ErrNotMeasuring = errors.New("no trial is measuring at the moment")

// Feed publishes the state of a run. Its methods do not block and are safe for concurrent use. A nil Feed
// discards everything.
type Feed struct {
	epoch string // distinguishes message IDs of different attempts at a run

	mu        sync.Mutex
	state     State
	log       backlog
	changed   chan struct{} // closed and replaced at every message
	closed    bool
	fire      Fire
	byLink    map[string]int
	base      []Link       // links at the start of the measurement
	dirty     map[int]bool // links with unpublished changes
	linksSent time.Time    // last message about links
	ended     []record.Trial
	err       error // first message that could not be encoded
}

// New returns the feed of a run in which the trials in before have ended.
func New(r Run, before ...record.Trial) *Feed {
	return &Feed{
		ended: before,
		epoch: strconv.FormatInt(time.Now().UnixNano(), 36), changed: make(chan struct{}),
		state: State{
			Run: r, Seconds: []record.Second{}, Nodes: []record.NodeSecond{}, Events: []record.Event{},
			Results: []Result{}, Doubts: warnings.Collect(before, r.Planned),
		},
	}
}

// publish applies a change to the state and appends a message with the value of v.
func (f *Feed) publish(kind Kind, change func(*State), v func(*State) any) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	change(&f.state)
	f.appendMessage(kind, v(&f.state))
}

func (f *Feed) appendMessage(kind Kind, v any) {
	if err := f.log.add(kind, v); err != nil { // such as NaN
		if f.err == nil {
			f.err = fmt.Errorf("encode %s: %w", kind, err)
		}
		return
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// BeginTrial starts a trial and clears the state of the previous one.
func (f *Feed) BeginTrial(t Trial) {
	if t.Parameters == nil {
		t.Parameters = map[string]any{}
	}
	f.publish(KindState, func(s *State) {
		f.byLink, f.base, f.dirty, f.fire = nil, nil, nil, nil
		*s = State{
			Run: s.Run, Tasks: s.Tasks, Results: s.Results, Doubts: s.Doubts, Trial: &t, Seconds: []record.Second{},
			Nodes: []record.NodeSecond{}, Events: []record.Event{},
		}
	}, func(s *State) any { return s })
}

func (f *Feed) SetStage(what string) {
	f.updateTrial(func(t *Trial) { t.Stage = what })
}

// SetMeasuring starts the measurement; fire may be called until SetMeasuring is called with nil.
func (f *Feed) SetMeasuring(began time.Time, fire Fire) {
	f.updateTrial(func(t *Trial) {
		f.fire, t.Measuring = fire, fire != nil
		if fire != nil {
			t.Began = &began
			if f.state.Cloud != nil {
				f.base = slices.Clone(f.state.Cloud.Links)
			}
		}
	})
}

func (f *Feed) updateTrial(change func(*Trial)) {
	f.publish(KindTrial, func(s *State) {
		if s.Trial != nil {
			next := *s.Trial
			change(&next)
			s.Trial = &next
		}
	}, func(s *State) any { return s.Trial })
}

// SetCloud publishes the lab once it is up.
func (f *Feed) SetCloud(c Cloud) {
	c.Sites, c.Nodes, c.Links = append([]Site{}, c.Sites...), append([]Node{}, c.Nodes...), append([]Link{}, c.Links...) // encode nil as []
	f.publish(KindState, func(s *State) {
		s.Cloud = &c
		f.byLink, f.dirty = make(map[string]int, len(c.Links)), map[int]bool{}
		for i, l := range c.Links {
			f.byLink[l.ID] = i
		}
	}, func(s *State) any { return s })
}

// AddSecond publishes a second of the driver.
func (f *Feed) AddSecond(x record.Second) {
	f.publish(KindSecond, func(s *State) {
		s.Seconds = trimRows(append(s.Seconds, x), keepSeconds)
		if x.T >= 0 {
			s.Totals = record.Outcomes{
				OK: s.Totals.OK + x.OK, Failed: s.Totals.Failed + x.Failed, Unknown: s.Totals.Unknown + x.Unknown,
				Dropped: s.Totals.Dropped + x.Dropped,
			}
		}
	}, func(*State) any { return x })
	f.flushLinks()
}

// AddOperations publishes a second of each kind of operation.
func (f *Feed) AddOperations(rows []record.OperationSecond) {
	addRows(f, KindOperations, rows, func(s *State) *[]record.OperationSecond { return &s.Operations })
}

// AddPools publishes a second of each workload.
func (f *Feed) AddPools(rows []record.PoolSecond) {
	addRows(f, KindPools, rows, func(s *State) *[]record.PoolSecond { return &s.Pools })
}

// AddErrors publishes the failed operations of a second.
func (f *Feed) AddErrors(rows []record.ErrorSecond) {
	addRows(f, KindErrors, rows, func(s *State) *[]record.ErrorSecond { return &s.Errors })
}

func addRows[T any](f *Feed, kind Kind, rows []T, of func(*State) *[]T) {
	if len(rows) > 0 {
		f.publish(kind, func(s *State) { *of(s) = trimRows(append(*of(s), rows...), keepSeconds) }, func(*State) any { return rows })
	}
}

// AddNodes publishes the resource use of a second.
func (f *Feed) AddNodes(rows []record.NodeSecond) {
	if len(rows) == 0 {
		return
	}
	f.publish(KindNodes, func(s *State) { s.Nodes = trimRows(append(s.Nodes, rows...), keepNodes) }, func(*State) any { return rows })
	f.flushLinks()
}

func (f *Feed) SetNetwork(x record.NetworkSecond) {
	f.publish(KindNetwork, func(s *State) { s.Network = &x }, func(*State) any { return x })
}

// AddEvent publishes a line of events.jsonl; it replaces the event's previous line.
func (f *Feed) AddEvent(e record.Event) {
	f.publish(KindEvent, func(s *State) {
		for i := len(s.Events) - 1; i >= 0 && e.ID != 0; i-- {
			if s.Events[i].ID == e.ID {
				s.Events[i] = e
				return
			}
		}
		s.Events = trimRows(append(s.Events, e), keepEvents)
	}, func(*State) any { return e })
}

// EndTrial publishes the result of a trial, and the warnings about the run.
func (f *Feed) EndTrial(x record.Trial) {
	r := Result{
		ID: x.ID, State: x.State, Error: x.Error, Goodput: x.Goodput, Verdict: x.Verdict.State,
		Reasons: x.Verdict.Reasons, Assertions: x.Assertions,
	}
	f.publish(KindResult, func(s *State) {
		again := func(x Result) bool { return x.ID == r.ID }
		s.Results = append(slices.DeleteFunc(slices.Clone(s.Results), again), r)
		if s.Trial == nil || s.Trial.ID != x.ID { // a trial of another lane
			return
		}
		t := *s.Trial
		t.Measuring, t.Stage = false, "ended"
		s.Trial, f.fire = &t, nil
	}, func(*State) any { return r })
	f.publish(KindDoubts, func(s *State) {
		again := func(t record.Trial) bool { return t.ID == x.ID }
		if x.State != record.TrialOK && slices.ContainsFunc(f.ended, func(t record.Trial) bool { return again(t) && t.State == record.TrialOK }) {
			return // the earlier successful attempt counts, as in the record
		}
		f.ended = append(slices.DeleteFunc(slices.Clone(f.ended), again), x)
		s.Doubts = warnings.Collect(f.ended, s.Run.Planned)
	}, func(s *State) any { return s.Doubts })
}

// Close publishes the end of the run. It returns the first encoding error.
func (f *Feed) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed, f.fire = true, nil
		f.appendMessage(KindEnd, struct{}{})
	}
	return f.err
}

// Fire fires an event in the current trial.
func (f *Feed) Fire(ctx context.Context, e event.Event) (record.Event, error) {
	f.mu.Lock()
	fire := f.fire
	f.mu.Unlock()
	if fire == nil {
		return record.Event{}, ErrNotMeasuring
	}
	return fire(ctx, e)
}

// StateJSON returns the current state, and the ID of the last message in it.
func (f *Feed) StateJSON() (state []byte, id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, err = json.Marshal(f.state)
	return state, f.formatID(f.log.next), err
}

func (f *Feed) formatID(n uint64) string { return f.epoch + "." + strconv.FormatUint(n, 10) }

func NewLink(id, a, b string, ab, ba link.Quality) Link {
	return Link{ID: id, A: a, B: b, AB: newWay(ab), BA: newWay(ba)}
}

func newWay(q link.Quality) Way {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return Way{LatencyMS: ms(q.Latency), JitterMS: ms(q.Jitter), Loss: q.LossShare(), Bandwidth: q.Bandwidth, Down: q.Down}
}

func (f *Feed) ChangeLinks(changes []link.Change) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Cloud == nil {
		return
	}
	for _, c := range changes {
		i, ok := f.byLink[c.ID]
		if !ok {
			continue
		}
		l := &f.state.Cloud.Links[i]
		if c.AB != nil {
			l.AB = newWay(*c.AB)
		}
		if c.BA != nil {
			l.BA = newWay(*c.BA)
		}
		l.Changed = f.base != nil && (l.AB != f.base[i].AB || l.BA != f.base[i].BA)
		f.dirty[i] = true
	}
	f.publishLinks()
}

// SetCarrier publishes that the devices of a link are up or down.
func (f *Feed) SetCarrier(id string, up bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok := f.byLink[id]; ok {
		f.state.Cloud.Links[i].CarrierDown = !up
		f.dirty[i] = true
		f.publishLinks()
	}
}

// SetRTTs publishes the probed median round trips, in milliseconds by link.
func (f *Feed) SetRTTs(rtt map[string]float64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, ms := range rtt {
		if i, ok := f.byLink[id]; ok {
			f.state.Cloud.Links[i].RTTMS = &ms
			f.dirty[i] = true
		}
	}
	f.publishLinks()
}

func (f *Feed) flushLinks() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.publishLinks()
}

// publishLinks publishes changed links, unless it just did; then the next second publishes them.
func (f *Feed) publishLinks() {
	if len(f.dirty) == 0 || f.closed || time.Since(f.linksSent) < minLinkInterval {
		return
	}
	list := make([]Link, 0, len(f.dirty))
	for _, i := range slices.Sorted(maps.Keys(f.dirty)) {
		list = append(list, f.state.Cloud.Links[i])
	}
	clear(f.dirty)
	f.linksSent = time.Now()
	f.appendMessage(KindLinks, list)
}
