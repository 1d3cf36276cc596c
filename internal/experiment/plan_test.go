package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlan(t *testing.T) {
	text := small + "matrix:\n  workload: [a, {name: c, threads: 2}, {file: nothing}]\n  scale: [0.2, 1.0]\nrepetitions: 3\n"
	text = strings.Replace(text, ", {file: nothing}", "", 1)
	e := parse(t, text)
	plan := e.Plan()
	if len(plan) != 12 {
		t.Fatalf("%d trials, want 12", len(plan))
	}
	byID := map[int]string{}
	seeds := map[uint64]bool{}
	for i, c := range plan {
		if want := i/4 + 1; c.Repetition != want {
			t.Errorf("trial %d at position %d is of repetition %d, want %d: repetitions run one after the other", c.ID, i, c.Repetition, want)
		}
		x := c.Experiment
		byID[c.ID] = fmt.Sprintf("%d %v %v %v %v %v", c.Repetition, c.Parameters["workload"], c.Parameters["scale"], x.Workload.Name, x.Scale,
			x.Workload.Threads)
		seeds[c.Seed] = true
		if c.Parameters["database"] != "redis" || !slices.Equal(c.Axes, []string{"workload", "scale"}) {
			t.Errorf("trial %d: parameters %v, axes %v", c.ID, c.Parameters, c.Axes)
		}
	}
	want := map[int]string{}
	for r := range 3 {
		for i, s := range []string{"a 0.2 a 0.2 16", "a 1 a 1 16", "c 0.2 c 0.2 2", "c 1 c 1 2"} {
			want[r*4+i+1] = fmt.Sprintf("%d %s", r+1, s)
		}
	}
	if diff := cmp.Diff(want, byID); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(seeds) != 12 {
		t.Errorf("%d seeds for 12 trials", len(seeds))
	}
}

func TestOrderDependsOnSeed(t *testing.T) {
	text := small + "matrix: {scale: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]}\nrepetitions: 2\n"
	order := func(e Experiment) (ids []int) {
		for _, c := range e.Plan() {
			ids = append(ids, c.ID)
		}
		return ids
	}
	one, again, two := order(parse(t, text)), order(parse(t, text)), order(parse(t, text, "seed=2"))
	if !slices.Equal(one, again) {
		t.Errorf("the same seed gives %v and %v", one, again)
	}
	if slices.Equal(one, two) || slices.IsSorted(one[:8]) {
		t.Errorf("seed 1 gives %v, seed 2 gives %v: want two shuffled orders", one, two)
	}
	for i := range 8 {
		one[i+8] -= 8
	}
	if slices.Equal(one[:8], one[8:]) {
		t.Errorf("both repetitions have the order %v", one[:8])
	}
	// The order of a seed must not change, or old runs cannot be resumed.
	if want := []int{7, 6, 3, 5, 2, 4, 8, 1}; !slices.Equal(one[:8], want) {
		t.Errorf("seed 1 gives %v, want %v", one[:8], want)
	}
}

// The outputs of the reference implementation of SplitMix64 started at 1234567.
func TestTrialSeed(t *testing.T) {
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := trialSeed(1234567, i+1); got != want {
			t.Errorf("trial %d: seed %d, want %d", i+1, got, want)
		}
	}
}

func TestParameters(t *testing.T) {
	tests := []struct {
		name, matrix string
		want         map[string]any // parameters of trial 1, except database and workload
	}{
		{"none", "", map[string]any{"scale": 1.0}},
		{"numbers", "matrix: {workload.threads: [4, 8], seed: [7]}",
			map[string]any{"scale": 1.0, "workload.threads": int64(4), "seed": int64(7)}},
		{"lists", "matrix: {database.nodes: [[n1, n2, n3], [n2, n3, n4]]}", map[string]any{"scale": 1.0, "database.nodes": "n1,n2,n3"}},
		{"mappings", "matrix: {stop: [{time: 1s}, {time: 2s}]}", map[string]any{"scale": 1.0, "stop": "time=1s"}},
		{"topologies", "matrix: {topology: [ring:3, 'mesh:3']}", map[string]any{"scale": 1.0, "topology": "ring:3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := map[string]any{"database": "redis", "workload": "a"}
			maps.Copy(want, tt.want)
			for _, c := range parse(t, small+tt.matrix).Plan() {
				if c.ID == 1 {
					if diff := cmp.Diff(want, c.Parameters); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
				}
			}
		})
	}
}

func TestEstimate(t *testing.T) {
	if d, known := parse(t, small, "stop.time=20s", "warmup=2s", "repetitions=3", "workload.records=10000").Estimate(); !known ||
		d != 3*(setupTime+27e9) {
		t.Errorf("three trials of 22 s that load for 5 s take %v (known: %v)", d, known)
	}
	pools := strings.Replace(small, "workload: {name: a, properties: {fieldlength: 50}}",
		"workloads: [{name: readers, workload: {name: c, records: 10000}}, {name: writers, workload: {name: a, records: 10000}}]", 1)
	if d, known := parse(t, pools, "stop.time=20s", "warmup=2s").Estimate(); !known || d != setupTime+27e9 {
		t.Errorf("a trial of two pools that share 10,000 records takes %v (known: %v)", d, known)
	}
	if _, known := parse(t, small, "stop.operations=1000").Estimate(); known {
		t.Error("the duration of 1000 operations is reported as known")
	}
}
