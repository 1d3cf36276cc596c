package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
	"skerry/internal/report/series"
	"skerry/internal/report/svg"
)

func TestSpans(t *testing.T) {
	at := func(s float64) *record.Moment { return &record.Moment{NS: int64(s * 1e9)} }
	step := func(began, accepted, completed *record.Moment) *record.Step {
		return &record.Step{Began: began, Accepted: accepted, Completed: completed}
	}
	effect := func(makes record.Condition, settles bool) *record.Effect {
		return &record.Effect{On: record.OnNodes, Makes: makes, Settles: settles}
	}
	events := []record.Event{
		{Kind: "scale", Message: "links at 1 of their latency"},
		{ID: 1, Kind: "latency", State: record.EventReverted, Effect: effect(record.Changed, false), Message: "latency of a~b x 3", Apply: step(at(5), at(5), at(5)), Revert: step(at(15), at(15), at(15))},
		{ID: 2, Kind: "kill", State: record.EventActive, Effect: effect(record.Down, false), Name: "blow", Message: "a killed", Apply: step(at(20), at(20), at(20))},
		{ID: 3, Kind: "leave", Effect: effect(record.Down, true), Message: "b leaves", Apply: step(at(10), at(12), at(30)), Revert: step(at(40), nil, nil), State: record.EventFailed, Error: "busy"},
		{ID: 4, Kind: "join", Effect: effect(record.Up, true), State: record.EventSkipped},
	}
	seconds := []record.Second{{T: -1, Length: 1}, {T: 3, Length: 1, Stolen: 0.2}, {T: 4, Length: 1, Stolen: 0.3}, {T: 5, Length: 1}, {T: 6, Length: 0.5, Stolen: 0.1}}
	want := []svg.Span{
		{From: 5, To: 15, Class: "band", Name: "latency: latency of a~b x 3, 5.00 s to 15.0 s"},
		{From: 20, To: 60, Class: "band", Name: "blow: a killed, 20.0 s to 60.0 s"},
		{From: 10, To: 30, Class: "band", Name: "leave: b leaves, asked for at 10.0 s, accepted after 2.00 s, complete after 20.0 s, failed: busy"},
		{From: 40, To: 60, Class: "band", Name: "leave: b leaves, reverted, asked for at 40.0 s, not complete, failed: busy"},
		{From: 3, To: 5, Class: "stolen", Name: "processors taken away: the driver could not run for 0.5 of 2 s"},
		{From: 6, To: 6.5, Class: "stolen", Name: "processors taken away: the driver could not run for 0.1 of 0.5 s"},
	}
	if diff := cmp.Diff(want, spansOf(append(series.BandsOf(events), series.StolenOf(seconds)...), 60)); diff != "" {
		t.Error(diff)
	}
}
