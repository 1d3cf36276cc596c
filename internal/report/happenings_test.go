package report

import (
	"bytes"
	"strings"
	"testing"

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
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
