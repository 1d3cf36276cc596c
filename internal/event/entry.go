package event

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// entry is an event of the list with its own random source: the draws of one entry do not depend on
// other entries.
type entry struct {
	Event
	index    int
	stage    Layout
	rand     *rand.Rand
	turns    int // occurrences drawn so far
	specJSON json.RawMessage
	// source is the origin of a fired event, "" for the experiment.
	source string

	// busyUntil is, for churn, the planned end of the occurrences by target. A target that is down
	// is not taken down again. ends lists the same times by occurrence.
	busyUntil map[string]time.Duration
	ends      []time.Duration
}

func newEntry(e Event, index int, s Layout, seed uint64) (*entry, error) {
	spec, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Label(), err)
	}
	// The golden ratio separates the random streams of the entries.
	source := rand.NewPCG(seed, uint64(index+1)*0x9e3779b97f4a7c15)
	return &entry{Event: e, index: index, stage: s, specJSON: spec, rand: rand.New(source), busyUntil: map[string]time.Duration{}}, nil
}

type drawnOccurrence struct {
	turn   int // from 0
	action action
	// next is the time from the due time of this occurrence to that of the next, for every and
	// churn.
	next time.Duration
	// duration is negative if the occurrence lasts to the end of the trial.
	duration time.Duration
}

// draw makes the next occurrence, due at a time since the start of the series. Its action is nil if
// no target is eligible, or if churn has reached its maximum of active occurrences.
func (e *entry) draw(at time.Duration) drawnOccurrence {
	h := drawnOccurrence{turn: e.turns, duration: -1}
	e.turns++
	switch {
	case e.Every != nil:
		h.next = e.Every.Duration()
	case e.Churn != nil:
		h.next = exponential(e.rand, e.Churn.Every.Duration())
	}
	if e.For != nil {
		h.duration = e.For.Duration()
	}
	if e.Churn != nil && e.Churn.Lasting != nil {
		h.duration = exponential(e.rand, e.Churn.Lasting.Duration())
	}
	busy, active := map[string]bool{}, 0
	for target, until := range e.busyUntil {
		busy[target] = until > at
	}
	for _, until := range e.ends {
		if until > at {
			active++
		}
	}
	h.action = e.Spec.spec.draw(e.stage, h.turn, busy, e.rand)
	if h.action == nil {
		return h
	}
	if e.Churn != nil && e.Churn.Most > 0 && active >= e.Churn.Most {
		h.action = nil
		return h
	}
	until := at + h.duration
	if h.duration < 0 {
		until = math.MaxInt64
	}
	if e.Churn != nil {
		e.ends = append(e.ends, until)
		for _, target := range h.action.targets() {
			e.busyUntil[target] = until
		}
	}
	return h
}

// exhausted reports whether choose: next has reached the end of its list.
func (e *entry) exhausted() bool {
	x, ok := e.Spec.spec.(limited)
	if !ok {
		return false
	}
	limit := x.limit(e.stage)
	return limit > 0 && e.turns >= limit
}

func exponential(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(r.ExpFloat64() * float64(mean))
}
