package verdict

import (
	"math"
	"slices"
	"strings"
	"time"

	"skerry/internal/record"
)

// Events are what happened, and how late: the 99th percentile, in us.
type Events struct {
	Happened []record.Event
	LateUS   float64
}

// EventsOf is the evidence of a trial's events.
func EventsOf(happened []record.Event) Events {
	return Events{happened, float64(late(happened)) / float64(time.Microsecond)}
}

// events judges what became of the events.
func (l Limits) events(e Events) (out []reason) {
	out = one(e.LateUS > l.EventLateUS, EventLate, "1 %% of the events began more than %.1f ms late (limit %.1f ms)", e.LateUS/1000, l.EventLateUS/1000)
	byHand := 0
	for _, x := range e.Happened {
		switch x.State {
		case record.EventFailed:
			why, _, _ := strings.Cut(x.Error, "\n") // logs of a database follow
			out = append(out, because(EventFailed, "event %d (%s) failed: %s", x.ID, x.Message, why))
		case record.EventSkipped:
			out = append(out, because(EventSkipped, "event %d (%s) did not happen: %s", x.ID, x.Message, x.Error))
		}
		if x.Source != "" {
			byHand++
		}
	}
	// With events of its own a trial is no repetition of the others.
	if byHand == 1 {
		return append(out, because(EventByHand, "an event was fired by hand"))
	}
	return append(out, one(byHand > 1, EventByHand, "%d events were fired by hand", byHand)...)
}

// late is how late events began and were reverted, 99th percentile; 0 without events.
func late(events []record.Event) time.Duration {
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
