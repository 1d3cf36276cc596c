package report

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
)

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
			t.Errorf("the second from %g is in phase %d, want %d", at, got, phase)
		}
	}
}

// TestPhaseRows reads a stored run: a link is cut while it is measured.
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
