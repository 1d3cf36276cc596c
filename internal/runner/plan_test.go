package runner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/experiment"
	"skerry/internal/record"
)

const twoByTwo = `
name: x
topology: pair
database: redis
workload: a
repetitions: 2
matrix: {workload: [a, c], scale: [0.2, 1]}
`

func load(t *testing.T, sets ...string) experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("x.yaml", []byte(twoByTwo), sets, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestPlannedNumbersCellsAlikeInEveryRepetition(t *testing.T) {
	cells := map[int]map[string]string{}
	for _, p := range planned(load(t)) {
		if was, ok := cells[p.Cell]; ok {
			if diff := cmp.Diff(was, normal(p.Parameters)); diff != "" {
				t.Errorf("cell %d has other parameters in repetition %d:\n%s", p.Cell, p.Repetition, diff)
			}
		}
		cells[p.Cell] = normal(p.Parameters)
	}
	if len(cells) != 4 {
		t.Errorf("%d cells, want 4", len(cells))
	}
}

func TestSamePlan(t *testing.T) {
	recorded := planned(load(t))
	throughJSON := make([]record.Planned, len(recorded))
	for i, p := range recorded {
		p.Parameters = map[string]any{"database": "redis", "workload": p.Parameters["workload"], "scale": p.Parameters["scale"]}
		throughJSON[i] = p
	}
	if err := samePlan(throughJSON, planned(load(t))); err != nil {
		t.Errorf("the same plan: %v", err)
	}
	for _, change := range []string{"seed=2", "repetitions=3", "matrix.scale=[0.2, 0.9]"} {
		if err := samePlan(recorded, planned(load(t, change))); err == nil {
			t.Errorf("%s: taken for the same plan", change)
		}
	}
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		42 * time.Second: "42 s", 10 * time.Minute: "10 min", 3 * time.Hour: "3.0 h",
	} {
		if got := roughly(d); got != want {
			t.Errorf("roughly(%v) = %q, want %q", d, got, want)
		}
	}
}
