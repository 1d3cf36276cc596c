package webdata

import (
	"cmp"
	"slices"

	"skerry/internal/record"
)

// changes are the kinds of events that are over when their change is complete; others hold
// until they are reverted.
var changes = []string{"leave", "join", "start", "resume", "restart"}

// bandsOf are the events of a trial with where they were in force; of changes, while they
// settled.
func bandsOf(events []record.Event) (bands []Band) {
	for _, e := range events {
		b := Band{Name: cmp.Or(e.Name, e.Kind), Kind: e.Kind, Text: e.Message, From: num(e.T), Targets: e.Targets, State: e.State, Error: e.Error}
		if e.Apply == nil || e.Apply.Began == nil {
			if e.ID == 0 { // a note: the links' scale, a drift
				b.To = &b.From
			}
			bands = append(bands, b)
			continue
		}
		first := b.step(e.Apply)
		switch {
		case !slices.Contains(changes, e.Kind):
			first.To = nil
			if e.Revert != nil && e.Revert.Completed != nil {
				first.To = number(e.Revert.Completed.Seconds())
			}
		case e.Revert != nil && e.Revert.Began != nil:
			bands = append(bands, first)
			first = b.step(e.Revert)
			first.Text += ", reverted"
		}
		bands = append(bands, first)
	}
	return bands
}

// step is the band of one change of an event: from its begin until it was complete.
func (b Band) step(s *record.Step) Band {
	b.From, b.LateMS, b.Moved = num(s.Began.Seconds()), num(float64(s.Late().Microseconds())/1000), s.Bytes
	if s.Accepted != nil {
		b.AcceptedS = number(s.Accepted.Seconds() - s.Began.Seconds())
	}
	if s.Completed != nil {
		b.CompleteS = number(s.Completed.Seconds() - s.Began.Seconds())
		b.To = number(s.Completed.Seconds())
	}
	return b
}

func number(v float64) *num {
	n := num(v)
	return &n
}
