package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
)

// eventful is a run with one trial in which something happened.
func eventful(t *testing.T) *record.Dir {
	t.Helper()
	w, err := record.Create(t.TempDir(), record.Run{Name: "x",
		Plan: []record.Planned{{ID: 1, Cell: 1, Repetition: 1, Parameters: map[string]any{"database": "redis"}}}})
	must(t, err)
	tw, err := w.OpenTrial(1)
	must(t, err)
	took := 1.25
	must(t, tw.Finish(record.Trial{State: record.TrialOK, Goodput: 100, Verdict: record.Verdict{State: record.Valid},
		Events: []record.EventImpact{
			{Name: "power cut", Kind: "kill", AtS: 20, Recovery: record.Recovery{BaselineOps: 100, RecoverS: 40, Censored: true,
				TakeoverS: &took, DipDepth: 1, Availability: 0.875}},
			{Name: "cpu", Kind: "cpu", AtS: 1, Recovery: record.Recovery{Availability: 1}}},
		Audit: &record.Audit{Acknowledged: 12345, Lost: 3, History: &record.HistoryAudit{Keys: 8, Operations: 900, Result: record.Violated}},
		Assertions: []record.Assertion{{Text: "goodput > 1", Held: true, Value: "100 ops/s"}, {Text: "lost_writes == 0", Value: "3"},
			{Text: "scan.p95 < 1s"}}}))
	must(t, w.Finish())
	d, err := record.Open(w.Dir())
	must(t, err)
	return d
}

func TestTextShowsEventsAuditsAssertions(t *testing.T) {
	d := eventful(t)
	var text bytes.Buffer
	must(t, Text(&text, d, TextOptions{}))
	for _, want := range []string{"power cut (kill)", "> 40.0", "1.25", "87.5 %", "of 12,345 acknowledged writes 3 were lost",
		"history violated",
		"trial 1: lost_writes == 0 failed (3)", "scan.p95 < 1s failed (not measured)", "1 assertion held"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
}

func TestPhasesOfEvents(t *testing.T) {
	s := func(v float64) *float64 { return &v }
	got := eventWindows([]record.EventImpact{
		{Kind: "cpu", AtS: 10, CompleteS: s(0.1), RevertedS: s(20)},
		{Kind: "join", Effect: &record.Effect{Member: record.Joins, Settles: true}, AtS: 30, CompleteS: s(4.5)},
		{Kind: "kill", AtS: 50, CompleteS: s(0)},
	})
	want := []window{{0, 10, 20, 30}, {20, 30, 34.5, 50}, {34.5, 50, math.Inf(1), math.Inf(1)}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(window{})); diff != "" {
		t.Error(diff)
	}
	for at, phase := range map[float64]int{19: -1, 20: phaseBefore, 29: phaseBefore, 29.5: phaseDuring, 34: phaseDuring,
		35: phaseAfter, 49: phaseAfter, 50: -1} {
		if got := want[1].phase(at); got != phase {
			t.Errorf("the second that starts at %g is in phase %d, want %d", at, got, phase)
		}
	}
}

// TestPhaseRows reads a stored run in which a link is cut during the measurement.
func TestPhaseRows(t *testing.T) {
	m := newModel(open(t, "webdata/testdata/two-distances"))
	rows := m.phaseRows()
	if len(rows) == 0 {
		t.Fatal("no rows")
	}
	cut := map[string]phaseRow{}
	for _, r := range rows {
		if r.Trial == "1" && r.Event == "cut" {
			cut[r.Operation] = r
		}
	}
	for _, operation := range []string{"READ", "UPDATE"} {
		r := cut[operation]
		for phase, p95 := range r.P95 {
			if p95 == noFigure || p95 == "" {
				t.Errorf("%s has nothing in phase %d: %+v", operation, phase, r)
			}
		}
	}
}

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

// TestTrialProbeRows separates the jobs before an event from those during the event.
func TestTrialProbeRows(t *testing.T) {
	job := func(at, read float64) record.Probe {
		return record.Probe{StartS: at, DurationS: 0.5, Operations: map[string]record.OperationSummary{
			"READ": {Count: 100, Service: record.Latency{P95: 1000 * read}}}}
	}
	trial := record.Trial{ID: 3, Events: []record.EventImpact{{Name: "added", AtS: 10}},
		Probes: []record.Probe{job(5, 2), job(0, 1), job(9.8, 30), job(15, 8), job(20, 4), {StartS: 25, Error: "refused"}}}
	want := []probeRow{{Trial: "3", Jobs: "6", Operation: "READ", Before: "2.00", During: "8.00", Highest: "30.0", At: "9.80",
		OverTime: "▁▁█▃▂·"}}
	if diff := cmp.Diff(want, trialProbeRows(trial)); diff != "" {
		t.Error(diff)
	}
	over := 17.0
	trial.Events[0].RevertedS = &over // before the job at 20 s
	if got := trialProbeRows(trial)[0]; got.Before != "2.00" || got.During != "30.0" {
		t.Errorf("after a reverted event: %+v", got)
	}
	trial.Events = nil
	if got := trialProbeRows(trial)[0]; got.Before != noFigure || got.During != "4.00" {
		t.Errorf("without an event: %+v", got)
	}
	if got := trialProbeRows(record.Trial{}); got != nil {
		t.Errorf("without jobs: %+v", got)
	}
}
