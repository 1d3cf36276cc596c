package warnings

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
)

func TestSeverityOrder(t *testing.T) {
	valid := record.Trial{ID: 1, State: record.TrialOK, Verdict: record.Verdict{State: record.Valid}}
	of := func(id int, change func(*record.Trial)) record.Trial {
		x := valid
		x.ID = id
		change(&x)
		return x
	}
	trials := []record.Trial{
		valid,
		of(2, func(t *record.Trial) {
			t.Verdict = record.Verdict{State: record.Suspect, Reasons: []string{"the machine was busy"}}
		}),
		of(3, func(t *record.Trial) { t.State, t.Error = record.TrialFailed, "no cluster.\nits log" }),
		of(4, func(t *record.Trial) { t.Audit = &record.Audit{Lost: 2, Stale: 1} }),
		of(5, func(t *record.Trial) { t.Assertions = []record.Assertion{{Text: "lost_writes == 0", Value: "2"}} }),
		of(6, func(t *record.Trial) {
			t.Assertions = []record.Assertion{{Text: "read.p99 < 5 ms"}, {Text: "goodput > 1/s", Held: true}}
		}),
		of(7, func(t *record.Trial) { t.Audit = &record.Audit{History: &record.HistoryAudit{Result: record.Violated}} }),
	}
	want := []Warning{
		{Assertion, []int{5, 6}, "Assertions failed in 2 of 8 trials. Trial 5: lost_writes == 0, measured 2."},
		{Audit, []int{4, 7}, "The audit reported problems in 2 of 8 trials. Trial 4: 2 acknowledged writes were lost; 1 copies were stale."},
		{Failed, []int{3}, "1 of 8 trials failed without a measurement. Trial 3: no cluster."},
		{Trust, []int{2}, "1 of 8 trials are suspect. Trial 2: the machine was busy."},
	}
	if diff := cmp.Diff(want, Collect(trials, 8)); diff != "" {
		t.Error(diff)
	}
	if got := Collect(trials[:1], 1); len(got) != 0 {
		t.Errorf("a valid trial: %v", got)
	}
	if got := Collect(trials[6:], 1); len(got) != 1 ||
		got[0].Text != "The audit reported problems in 1 of 1 trial. Trial 7: the history is not linearizable." {
		t.Errorf("a violated history: %v", got)
	}
}
