package recovery

import (
	"cmp"
	"slices"

	"skerry/internal/record"
)

// leastWatch is how many seconds an event is watched at least: what happens closer behind it
// is part of it.
const leastWatch = 1.0

// Happenings measures each of a trial's events that took place, in order of time; end is
// when the measurement ended, in its seconds.
func Happenings(events []record.Event, bins []Bin, end float64, rules Rules) []record.Happening {
	events = slices.DeleteFunc(slices.Clone(events), func(e record.Event) bool {
		return e.ID == 0 || e.Apply == nil || e.Apply.Began == nil || e.Apply.Began.Seconds() >= end
	})
	slices.SortStableFunc(events, func(a, b record.Event) int { return cmp.Compare(a.Apply.Began.NS, b.Apply.Began.NS) })
	out := make([]record.Happening, 0, len(events))
	for i, e := range events {
		at, until := e.Apply.Began.Seconds(), end
		for _, next := range events[i+1:] {
			if t := next.Apply.Began.Seconds(); t >= at+leastWatch {
				until = t
				break
			}
		}
		h := record.Happening{Name: cmp.Or(e.Name, e.Kind), Kind: e.Kind, Source: e.Source, Effect: e.Effect, AtS: at, Carried: e.Carried, Recovery: Of(bins, at, until, rules)}
		if e.Revert != nil && e.Revert.Completed != nil {
			h.RevertedS = new(float64)
			*h.RevertedS = e.Revert.Completed.Seconds()
		}
		h.AcceptedS, h.CompleteS = since(e.Apply.Began, e.Apply.Accepted), since(e.Apply.Began, e.Apply.Completed)
		out = append(out, h)
	}
	return out
}

// since is the time between two moments, nil where the second did not come.
func since(from, to *record.Moment) *float64 {
	if to == nil {
		return nil
	}
	s := to.Seconds() - from.Seconds()
	return &s
}
