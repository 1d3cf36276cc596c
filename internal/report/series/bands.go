package series

import (
	"cmp"

	"skerry/internal/record"
)

// Band is an event as a stretch of the timeline: where it was in force, or while its change
// settled. To is null where it lasted to the end.
type Band struct {
	Name string  `json:"name"`
	Kind string  `json:"kind"`
	Text string  `json:"text"`
	From Number  `json:"from"`
	To   *Number `json:"to,omitempty"`
	// Effect is on Targets; absent for notes: of the links' scale, a drift.
	Effect  *record.Effect `json:"effect,omitempty"`
	Targets []string       `json:"targets,omitempty"`
	// Reverts says that this is the change that took a settled event back, whose effect is
	// the opposite.
	Reverts bool   `json:"reverts,omitempty"`
	State   string `json:"state,omitempty"`
	Error   string `json:"error,omitempty"`
	LateMS  Number `json:"late_ms,omitempty"`
	// AcceptedS and CompleteS count from From; Moved is in bytes.
	AcceptedS *Number `json:"accepted_s,omitempty"`
	CompleteS *Number `json:"complete_s,omitempty"`
	Moved     int64   `json:"moved,omitempty"`
}

// BandsOf are the events of a trial, those that never began and notes among them.
func BandsOf(events []record.Event) (bands []Band) {
	for _, e := range events {
		b := Band{Name: cmp.Or(e.Name, e.Kind), Kind: e.Kind, Text: e.Message, From: Number(e.T), Effect: e.Effect, Targets: e.Targets, State: e.State, Error: e.Error}
		if !begun(e.Apply) {
			if e.ID == 0 {
				b.To = &b.From
			}
			bands = append(bands, b)
			continue
		}
		first := b.step(e.Apply)
		if e.Effect == nil || !e.Effect.Settles {
			first.To = nil
			if e.Revert != nil && e.Revert.Completed != nil {
				first.To = number(e.Revert.Completed.Seconds())
			}
		}
		bands = append(bands, first)
		if e.Effect != nil && e.Effect.Settles && begun(e.Revert) {
			back := b.step(e.Revert)
			back.Reverts, back.Effect = true, e.Effect.Opposite()
			bands = append(bands, back)
		}
	}
	return bands
}

func begun(s *record.Step) bool { return s != nil && s.Began != nil }

// step is the band of one change of an event: from its begin until it was complete.
func (b Band) step(s *record.Step) Band {
	b.From, b.LateMS, b.Moved = Number(s.Began.Seconds()), Number(float64(s.Late().Microseconds())/1000), s.Bytes
	if s.Accepted != nil {
		b.AcceptedS = number(s.Accepted.Seconds() - s.Began.Seconds())
	}
	if s.Completed != nil {
		b.CompleteS = number(s.Completed.Seconds() - s.Began.Seconds())
		b.To = number(s.Completed.Seconds())
	}
	return b
}

func number(v float64) *Number {
	n := Number(v)
	return &n
}
