package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
)

func TestNewResizeRow(t *testing.T) {
	at := func(s float64) *record.Moment { return &record.Moment{NS: int64(s * 1e9)} }
	e := record.Event{Kind: "leave", Targets: []string{"pune"}, State: record.EventFailed, Error: "busy; later"}
	got := []resizeRow{
		newResizeRow(e, "leave", &record.Step{Began: at(10), Accepted: at(12), Completed: at(30), Bytes: 2_500_000}),
		newResizeRow(e, "join", &record.Step{Began: at(40)}),
	}
	want := []resizeRow{
		{Change: "leave", Node: "pune", At: "10.0", Accepted: "2.00", Complete: "20.0", Moved: "2.50", State: "complete"},
		{Change: "join", Node: "pune", At: "40.0", Accepted: noFigure, Complete: noFigure, Moved: noFigure, State: "failed: busy; later",
			Bad: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
