package report

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

// A long, shallow recovery is less severe than a short complete outage, and a censored recovery is not ranked with
// complete ones.
func TestWorstRecoveryLosesMostService(t *testing.T) {
	event := func(name string, recover, missing, depth float64, censored bool) record.EventImpact {
		return record.EventImpact{Name: name, Kind: "kill",
			Recovery: record.Recovery{BaselineOps: 100, RecoverS: recover, WatchedS: recover, DipOps: missing, DipDepth: depth, Censored: censored}}
	}
	trial := record.Trial{ID: 3, State: record.TrialOK, Verdict: record.Verdict{State: record.Valid}, Goodput: 100,
		Parameters: map[string]any{"scale": 1.0},
		Events:     []record.EventImpact{event("long", 30, 200, 0.12, false), event("deep", 9, 800, 0.99, false), event("last", 2, 40, 0.3, true)}}
	m := newModel(&record.Dir{Summary: record.Summary{Trials: []record.Trial{trial}}})
	got := m.recoveryHighlights()
	if len(got) != 2 || !strings.Contains(got[0].Text, "Worst of 2 events") || !strings.Contains(got[0].Text, "“deep”") ||
		!strings.Contains(got[0].Text, "8.00 s of complete outage") {
		t.Errorf("%+v", got)
	}
	if len(got) == 2 && (!strings.Contains(got[1].Text, "“last”") || !strings.Contains(got[1].Text, "within the 2.00 s")) {
		t.Errorf("%+v", got[1])
	}
}
