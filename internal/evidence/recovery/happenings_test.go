package recovery

import (
	"testing"

	"skerry/internal/record"
)

func moment(s float64) *record.Moment { return &record.Moment{NS: int64(s * 1e9)} }

func TestHappenings(t *testing.T) {
	bins := series(rates(repeat(100, 20), repeat(0, 5), repeat(100, 15), repeat(50, 20))...)
	events := []record.Event{
		{Kind: "scale"}, // of the trial itself
		{ID: 3, Kind: "kill", Apply: &record.Step{Due: *moment(40), Began: moment(40), Accepted: moment(40), Completed: moment(40)}},
		{ID: 1, Kind: "leave", Name: "one goes", Apply: &record.Step{Due: *moment(20), Began: moment(20), Accepted: moment(21), Completed: moment(24.5)},
			Revert: &record.Step{Began: moment(30), Completed: moment(31)}},
		{ID: 2, Kind: "cpu", State: record.EventSkipped},
		{ID: 4, Kind: "late", Apply: &record.Step{Began: moment(61)}},
	}
	got := Happenings(events, bins, 60, Rules{})
	if len(got) != 2 || got[0].Name != "one goes" || got[1].Name != "kill" {
		t.Fatalf("%+v", got)
	}
	leave, kill := got[0], got[1]
	if leave.AtS != 20 || *leave.AcceptedS != 1 || *leave.CompleteS != 4.5 || *leave.RevertedS != 31 {
		t.Errorf("%+v", leave)
	}
	if r := leave.Recovery; r.WatchedS != 20 || r.Censored || r.RecoverS != 5 {
		t.Errorf("it is watched up to the next event: %+v", r)
	}
	if r := kill.Recovery; !r.Censored || r.RecoverS != 20 || r.DipDepth < 0.4 {
		t.Errorf("%+v", r)
	}
}

func TestEventsOfOneMomentAreWatchedTogether(t *testing.T) {
	bins := series(rates(repeat(100, 20), repeat(0, 5), repeat(100, 15))...)
	events := []record.Event{
		{ID: 1, Kind: "kill", Apply: &record.Step{Began: moment(20)}},
		{ID: 2, Kind: "kill", Apply: &record.Step{Began: moment(20.002)}},
	}
	for _, h := range Happenings(events, bins, 40, Rules{}) {
		if h.Recovery.Censored || h.Recovery.WatchedS < 19 {
			t.Errorf("%+v", h)
		}
	}
}
