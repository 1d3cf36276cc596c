package runner

import (
	"encoding/json"
	"fmt"
	"slices"
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

// A cluster that trials share is told of the largest of their scales and of each workload
// once, one of its own of none.
func TestSharing(t *testing.T) {
	const clusters = "matrix={database: [redis, etcd], scale: [0.5, 2, 1], workload: [a, {name: e, timeout: 30s}]}"
	if got := sharing(load(t, clusters).Plan()); len(got) != 0 {
		t.Errorf("without reuse: %v", got)
	}
	e := load(t, clusters, "reuse=true")
	got := sharing(e.Plan())
	if len(got) != 2 {
		t.Errorf("%d clusters, want 2", len(got))
	}
	for _, c := range e.Plan() {
		s := got[c.Experiment.Footing()]
		if s.FarthestScale != 2 {
			t.Errorf("the cluster of trial %d is told of scale %g, one of its trials has 2", c.ID, s.FarthestScale)
		}
		var workloads []string
		for _, w := range s.Workloads {
			workloads = append(workloads, w.Experiment.Workload.Name)
		}
		slices.Sort(workloads)
		if diff := cmp.Diff([]string{"a", "e"}, workloads); diff != "" {
			t.Errorf("workloads of the cluster of trial %d (-want +got):\n%s", c.ID, diff)
		}
	}
}

func TestSamePlan(t *testing.T) {
	recorded := planned(load(t))
	for _, set := range []string{"seed=1", "matrix.workload.records=[10, 1000000]"} {
		if err := samePlan(throughJSON(t, planned(load(t, set))), planned(load(t, set))); err != nil {
			t.Errorf("%s: the same plan: %v", set, err)
		}
	}
	for _, change := range []string{"seed=2", "repetitions=3", "matrix.scale=[0.2, 0.9]"} {
		if err := samePlan(recorded, planned(load(t, change))); err == nil {
			t.Errorf("%s: taken for the same plan", change)
		}
	}
}

func TestSameFiles(t *testing.T) {
	recorded := map[string]string{"a.csv": "1", "b.csv": "2"}
	for name, tt := range map[string]struct {
		now  map[string]string
		want string
	}{
		"the same":             {map[string]string{"a.csv": "1", "b.csv": "2"}, ""},
		"one changed":          {map[string]string{"a.csv": "1", "b.csv": "3"}, "b.csv, which the experiment names, has changed since the run was started"},
		"an older run":         {nil, ""},
		"one is named no more": {map[string]string{"b.csv": "2"}, "a.csv, which the experiment names, has changed since the run was started"},
	} {
		was := recorded
		if name == "an older run" {
			was = nil
		}
		err := sameFiles(was, tt.now)
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || err != nil && got != tt.want {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// throughJSON is a plan as a later process reads it from run.json.
func throughJSON(t *testing.T, plan []record.Planned) (out []record.Planned) {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
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
