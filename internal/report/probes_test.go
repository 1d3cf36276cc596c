package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
)

// TestTrialProbeRows parts the jobs before an event from those while it was in force.
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
	trial.Events[0].RevertedS = &over // the job at 20 s is after it
	if got := trialProbeRows(trial)[0]; got.Before != "2.00" || got.During != "30.0" {
		t.Errorf("of an event that was taken back: %+v", got)
	}
	trial.Events = nil
	if got := trialProbeRows(trial)[0]; got.Before != noFigure || got.During != "4.00" {
		t.Errorf("without an event: %+v", got)
	}
	if got := trialProbeRows(record.Trial{}); got != nil {
		t.Errorf("without jobs: %+v", got)
	}
}
