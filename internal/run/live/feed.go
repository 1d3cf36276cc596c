package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"skerry/internal/event"
	"skerry/internal/evidence/warnings"
	"skerry/internal/record"
)

// linksAtMost is how often links that change all the time are told at most: what one event
// does to them is told at once.
const linksAtMost = 250 * time.Millisecond

// Fire makes an event happen in the trial that measures.
type Fire func(context.Context, event.Event) (record.Event, error)

// ErrNotMeasuring says that no trial is measuring in which an event could happen.
var ErrNotMeasuring = errors.New("no trial is measuring at the moment")

// Feed takes what happens in a run. All methods of a nil Feed do nothing: nobody looks. They
// return at once, and may be called from several goroutines.
type Feed struct {
	epoch string // tells this feed's message numbers from those of another attempt

	mu      sync.Mutex
	state   State
	log     backlog
	changed chan struct{} // closed, and replaced, at every message
	over    bool
	fire    Fire
	byLink  map[string]int
	base    []Link       // the links when the measurement began
	dirty   map[int]bool // links that were not told of yet
	toldAt  time.Time    // when links were told of
	ended   []record.Trial
	err     error // the first thing that could not be told
}

// New makes the feed of a run, of which these trials have ended before.
func New(r Run, before ...record.Trial) *Feed {
	return &Feed{
		ended: before,
		epoch: strconv.FormatInt(time.Now().UnixNano(), 36), changed: make(chan struct{}),
		state: State{Run: r, Seconds: []record.Second{}, Nodes: []record.NodeSecond{}, Events: []record.Event{}, Results: []Result{}, Doubts: warnings.Of(before, r.Planned)},
	}
}

// tell changes the state and puts a message into the backlog; v is called after change.
func (f *Feed) tell(kind Kind, change func(*State), v func(*State) any) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	change(&f.state)
	f.say(kind, v(&f.state))
}

func (f *Feed) say(kind Kind, v any) {
	if err := f.log.add(kind, v); err != nil { // a number that JSON has no word for
		if f.err == nil {
			f.err = fmt.Errorf("telling a %s: %w", kind, err)
		}
		return
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// Begin begins a trial: what was told of the one before is forgotten.
func (f *Feed) Begin(t Trial) {
	if t.Parameters == nil {
		t.Parameters = map[string]any{}
	}
	f.tell(KindState, func(s *State) {
		f.byLink, f.base, f.dirty, f.fire = nil, nil, nil, nil
		*s = State{Run: s.Run, Tasks: s.Tasks, Results: s.Results, Doubts: s.Doubts, Trial: &t, Seconds: []record.Second{}, Nodes: []record.NodeSecond{}, Events: []record.Event{}}
	}, func(s *State) any { return s })
}

// Stage says what the trial is at.
func (f *Feed) Stage(what string) {
	f.trial(func(t *Trial) { t.Stage = what })
}

// Measuring says that the measurement began, and how events can be fired; nil says that none
// can be any more.
func (f *Feed) Measuring(began time.Time, fire Fire) {
	f.trial(func(t *Trial) {
		f.fire, t.Measuring = fire, fire != nil
		if fire != nil {
			t.Began = &began
			if f.state.Cloud != nil {
				f.base = slices.Clone(f.state.Cloud.Links)
			}
		}
	})
}

func (f *Feed) trial(change func(*Trial)) {
	f.tell(KindTrial, func(s *State) {
		if s.Trial != nil {
			next := *s.Trial
			change(&next)
			s.Trial = &next
		}
	}, func(s *State) any { return s.Trial })
}

// Cloud says that the lab is up.
func (f *Feed) Cloud(c Cloud) {
	c.Sites, c.Nodes, c.Links = append([]Site{}, c.Sites...), append([]Node{}, c.Nodes...), append([]Link{}, c.Links...) // lists, also where none is
	f.tell(KindState, func(s *State) {
		s.Cloud = &c
		f.byLink, f.dirty = make(map[string]int, len(c.Links)), map[int]bool{}
		for i, l := range c.Links {
			f.byLink[l.ID] = i
		}
	}, func(s *State) any { return s })
}

// Second tells a second of the driver.
func (f *Feed) Second(x record.Second) {
	f.tell(KindSecond, func(s *State) {
		s.Seconds = keep(append(s.Seconds, x), keepSeconds)
		if x.T >= 0 {
			s.Totals = record.Outcomes{OK: s.Totals.OK + x.OK, Failed: s.Totals.Failed + x.Failed, Unknown: s.Totals.Unknown + x.Unknown, Dropped: s.Totals.Dropped + x.Dropped}
		}
	}, func(*State) any { return x })
	f.flushLinks()
}

// Operations tells a second of each kind of operation.
func (f *Feed) Operations(rows []record.OperationSecond) {
	if len(rows) > 0 {
		f.tell(KindOperations, func(s *State) { s.Operations = keep(append(s.Operations, rows...), keepSeconds) }, func(*State) any { return rows })
	}
}

// Pools tells a second of each workload, where there are several.
func (f *Feed) Pools(rows []record.PoolSecond) {
	if len(rows) > 0 {
		f.tell(KindPools, func(s *State) { s.Pools = keep(append(s.Pools, rows...), keepSeconds) }, func(*State) any { return rows })
	}
}

// Errors tells what did not end ok in a second.
func (f *Feed) Errors(rows []record.ErrorSecond) {
	if len(rows) > 0 {
		f.tell(KindErrors, func(s *State) { s.Errors = keep(append(s.Errors, rows...), keepSeconds) }, func(*State) any { return rows })
	}
}

// Nodes tells what nodes used in a second.
func (f *Feed) Nodes(rows []record.NodeSecond) {
	if len(rows) == 0 {
		return
	}
	f.tell(KindNodes, func(s *State) { s.Nodes = keep(append(s.Nodes, rows...), keepNodes) }, func(*State) any { return rows })
	f.flushLinks()
}

// Network tells a second of what packets met.
func (f *Feed) Network(x record.NetworkSecond) {
	f.tell(KindNetwork, func(s *State) { s.Network = &x }, func(*State) any { return x })
}

// Event tells a line of events.jsonl.
func (f *Feed) Event(e record.Event) {
	f.tell(KindEvent, func(s *State) {
		for i := len(s.Events) - 1; i >= 0 && e.ID != 0; i-- {
			if s.Events[i].ID == e.ID {
				s.Events[i] = e
				return
			}
		}
		s.Events = keep(append(s.Events, e), keepEvents)
	}, func(*State) any { return e })
}

// End tells how a trial ended, and what is to be doubted now.
func (f *Feed) End(x record.Trial) {
	r := Result{ID: x.ID, State: x.State, Error: x.Error, Goodput: x.Goodput, Verdict: x.Verdict.State, Reasons: x.Verdict.Reasons, Assertions: x.Assertions}
	f.tell(KindResult, func(s *State) {
		again := func(x Result) bool { return x.ID == r.ID }
		s.Results = append(slices.DeleteFunc(slices.Clone(s.Results), again), r)
		if s.Trial == nil || s.Trial.ID != x.ID { // one beside it
			return
		}
		t := *s.Trial
		t.Measuring, t.Stage = false, "ended"
		s.Trial, f.fire = &t, nil
	}, func(*State) any { return r })
	f.tell(KindDoubts, func(s *State) {
		again := func(t record.Trial) bool { return t.ID == x.ID }
		if x.State != record.TrialOK && slices.ContainsFunc(f.ended, func(t record.Trial) bool { return again(t) && t.State == record.TrialOK }) {
			return // the attempt that measured stands, as it does in the record
		}
		f.ended = append(slices.DeleteFunc(slices.Clone(f.ended), again), x)
		s.Doubts = warnings.Of(f.ended, s.Run.Planned)
	}, func(s *State) any { return s.Doubts })
}

// Close says that the run is over. It returns the first thing that could not be told.
func (f *Feed) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over, f.fire = true, nil
		f.say(KindEnd, struct{}{})
	}
	return f.err
}

// Fire makes an event happen in the trial at hand.
func (f *Feed) Fire(ctx context.Context, e event.Event) (record.Event, error) {
	f.mu.Lock()
	fire := f.fire
	f.mu.Unlock()
	if fire == nil {
		return record.Event{}, ErrNotMeasuring
	}
	return fire(ctx, e)
}

// JSON is the present state, and the id of the last message in it.
func (f *Feed) JSON() (state []byte, id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, err = json.Marshal(f.state)
	return state, f.id(f.log.next), err
}

func (f *Feed) id(n uint64) string { return f.epoch + "." + strconv.FormatUint(n, 10) }
