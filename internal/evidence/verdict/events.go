package verdict

import (
	"math"
	"slices"
	"strings"
	"time"

	"skerry/internal/record"
)

// Events are the events of a trial, and their lateness: the 99th percentile, in us.
type Events struct {
	Happened []record.Event
	LateUS   float64
}

// NewEvents returns the evidence of a trial's events.
func NewEvents(happened []record.Event) Events {
	return Events{happened, float64(eventLateness(happened)) / float64(time.Microsecond)}
}

func (l Limits) judgeEvents(e Events) (out []reason) {
	out = reasonIf(e.LateUS > l.EventLateUS, EventLate, "1 %% of the events began more than %.1f ms late (limit %.1f ms)", e.LateUS/1000,
		l.EventLateUS/1000)
	byHand := 0
	for _, x := range e.Happened {
		switch x.State {
		case record.EventFailed:
			why, _, _ := strings.Cut(x.Error, "\n") // the database's log follows
			out = append(out, newReason(EventFailed, "event %d (%s) failed: %s", x.ID, x.Message, why))
		case record.EventSkipped:
			out = append(out, newReason(EventSkipped, "event %d (%s) was skipped: %s", x.ID, x.Message, x.Error))
		}
		if x.Source != "" {
			byHand++
		}
	}
	// A trial with additional events is not comparable with its repetitions.
	if byHand == 1 {
		return append(out, newReason(EventByHand, "an event was fired by hand"))
	}
	return append(out, reasonIf(byHand > 1, EventByHand, "%d events were fired by hand", byHand)...)
}

// eventLateness is the lateness of starts and reversals of events, 99th percentile; 0 without events.
func eventLateness(events []record.Event) time.Duration {
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

// judgeAudit judges an audit. A history that is not linearizable is no reason, since many databases do not promise it.
func judgeAudit(a record.Audit) (out []reason) {
	for _, f := range []struct {
		n    int64
		what string
	}{
		{a.Lost, "acknowledged writes were lost"}, {a.Stale, "copies were older than what was acknowledged"},
		{a.Unexpected, "values were found that were never written there"},
	} {
		out = append(out, reasonIf(f.n > 0, Audit, "audit: %d %s", f.n, f.what)...)
	}
	// Unread records may be lost too, so the counts may be too low.
	out = append(out, reasonIf(a.Unread > 0, NoEvidence, "audit: %d records could not be read back", a.Unread)...)
	for _, r := range a.Replicas {
		why, _, _ := strings.Cut(r.Error, "\n")
		out = append(out, reasonIf(why != "", NoEvidence, "audit: the copy on %s could not be read: %s", r.Node, why)...)
	}
	return out
}
