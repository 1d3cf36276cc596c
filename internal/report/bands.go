package report

import (
	"fmt"
	"slices"

	"skerry/internal/record"
	"skerry/internal/report/svg"
)

// changes are the kinds of events that are over when their change is complete; others hold
// until they are reverted.
var changes = []string{"leave", "join", "start", "resume", "restart"}

// bands shade a trial's timeline where its events were in force; of changes, while they
// settled: from the request to its completion. last is the end of the timeline.
func bands(events []record.Event, last float64) (spans []svg.Span) {
	for _, e := range events {
		if e.Apply == nil || e.Apply.Began == nil {
			continue
		}
		if slices.Contains(changes, e.Kind) {
			spans = append(spans, settling(e, e.Apply, e.Message, last))
			if e.Revert != nil && e.Revert.Began != nil {
				spans = append(spans, settling(e, e.Revert, e.Message+", reverted", last))
			}
			continue
		}
		from, to := e.Apply.Began.Seconds(), last
		if e.Revert != nil && e.Revert.Completed != nil {
			to = min(to, e.Revert.Completed.Seconds())
		}
		spans = append(spans, svg.Span{From: from, To: to, Class: "band", Name: fmt.Sprintf("%s: %s, %s s to %s s%s", called(e), e.Message, figure(from), figure(to), failure(e))})
	}
	return spans
}

// settling is a change on its way.
func settling(e record.Event, s *record.Step, what string, last float64) svg.Span {
	from, to := s.Began.Seconds(), last
	text := fmt.Sprintf("%s: %s, asked for at %s s", called(e), what, figure(from))
	if s.Accepted != nil {
		text += fmt.Sprintf(", accepted after %s s", figure(s.Accepted.Seconds()-from))
	}
	if s.Completed != nil {
		to = min(to, s.Completed.Seconds())
		text += fmt.Sprintf(", complete after %s s", figure(s.Completed.Seconds()-from))
	} else {
		text += ", not complete"
	}
	return svg.Span{From: from, To: to, Class: "band", Name: text + failure(e)}
}

// called is the event's name, or its kind.
func called(e record.Event) string {
	if e.Name != "" {
		return e.Name
	}
	return e.Kind
}

func failure(e record.Event) string {
	if e.State != record.EventFailed {
		return ""
	}
	return ", failed: " + firstLine(e.Error)
}
