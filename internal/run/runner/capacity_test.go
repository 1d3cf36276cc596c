package runner

import (
	"math"
	"testing"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

func TestCapacity(t *testing.T) {
	planned := func(cells ...int) (all []record.Planned) {
		for i, c := range cells {
			all = append(all, record.Planned{ID: i + 1, Cell: c})
		}
		return all
	}
	measured := func(cores float64, memory int64) record.Trial {
		return record.Trial{State: record.TrialOK, Fidelity: record.Fidelity{OwnCPU: cores, OwnMemory: memory}}
	}
	for name, tt := range map[string]struct {
		most    experiment.Parallel
		learnt  map[int]record.Trial
		running []int
		want    bool
	}{
		"the first trial":      {experiment.Auto, nil, nil, true},
		"nothing known":        {experiment.Auto, nil, []int{1}, false},
		"room":                 {experiment.Auto, map[int]record.Trial{9: measured(0.4, 1)}, []int{9, 9}, true},
		"no cores":             {experiment.Auto, map[int]record.Trial{9: measured(0.5, 1)}, []int{9, 9}, false},
		"no memory":            {experiment.Auto, map[int]record.Trial{9: measured(0.1, 400)}, []int{9}, false},
		"unknown as the mean":  {experiment.Auto, map[int]record.Trial{1: measured(1.4, 1), 9: measured(0.1, 1)}, []int{2}, true},
		"unknown, too large":   {experiment.Auto, map[int]record.Trial{1: measured(2.6, 1), 9: measured(0.1, 1)}, []int{2}, false},
		"unknown takes memory": {experiment.Auto, map[int]record.Trial{1: measured(0.1, 699), 9: measured(0.1, 2)}, []int{2}, false},
		"as many as requested": {2, map[int]record.Trial{9: measured(0.1, 1)}, []int{9, 9}, false},
		"one at a time":        {1, map[int]record.Trial{9: measured(0.1, 1)}, []int{9}, false},
		"a failed trial gives no information": {
			experiment.Auto,
			map[int]record.Trial{9: {State: record.TrialFailed, Fidelity: record.Fidelity{OwnCPU: 0.1}}}, []int{9},
			false,
		},
	} {
		r := newCapacity(tt.most)
		r.machine = use{2, 1000}
		r.allowed = 0 // TestAutoCapacity
		for cell, x := range tt.learnt {
			r.recordUse(record.Planned{Cell: cell}, x)
		}
		if got := r.admits(planned(tt.running...), record.Planned{ID: 100, Cell: 9}); got != tt.want {
			t.Errorf("%s: admits %v", name, got)
		}
	}
}

// Unmeasured cells count as the most similar measured ones.
func TestCapacityOfSimilarCells(t *testing.T) {
	r := newCapacity(experiment.Auto)
	for i, x := range []struct {
		workload string
		scale    float64
		cores    float64
	}{{"a", 0.2, 0.4}, {"a", 1, 0.2}, {"e", 0.2, 1.2}, {"e", 0.4, 0.8}} {
		r.recordUse(record.Planned{Cell: i + 1, Parameters: map[string]any{"workload": x.workload, "scale": x.scale, "database": "redis"}},
			record.Trial{State: record.TrialOK, Fidelity: record.Fidelity{OwnCPU: x.cores}})
	}
	for name, tt := range map[string]struct {
		cell       int
		parameters map[string]any
		want       float64
	}{
		"measured":            {1, nil, 0.4},
		"the same workload":   {9, map[string]any{"workload": "e", "scale": 0.6, "database": "redis"}, 1},
		"the same scale":      {9, map[string]any{"workload": "b", "scale": 0.4, "database": "redis"}, 0.8},
		"one of the two":      {9, map[string]any{"workload": "e", "scale": 1.0, "database": "redis"}, 2.2 / 3},
		"only the common use": {9, map[string]any{"workload": "b", "scale": 0.8, "database": "redis"}, 2.6 / 4},
	} {
		if got := r.expectedUse(record.Planned{Cell: tt.cell, Parameters: tt.parameters}).cores; math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// Trials with low use succeed in parallel or disturb each other.
func TestAutoCapacity(t *testing.T) {
	ended := func(together int, kinds ...string) record.Trial {
		x := record.Trial{State: record.TrialOK, Concurrent: together - 1, Fidelity: record.Fidelity{OwnCPU: 0.01, OwnMemory: 1}}
		x.Verdict.State = record.Valid
		if len(kinds) > 0 {
			x.Verdict.State, x.Verdict.Kinds = record.Suspect, kinds
		}
		return x
	}
	late, lost := string(verdict.DriverLate), string(verdict.Audit)
	for name, tt := range map[string]struct {
		parallel experiment.Parallel
		ended    []record.Trial
		want     int
	}{
		"nothing known":                   {experiment.Auto, nil, 1},
		"one more":                        {experiment.Auto, []record.Trial{ended(1)}, 2},
		"one more than succeeded":         {experiment.Auto, []record.Trial{ended(1), ended(2), ended(2)}, 3},
		"a trial that was started before": {experiment.Auto, []record.Trial{ended(1), ended(2), ended(1)}, 3},
		"too many":                        {experiment.Auto, []record.Trial{ended(1), ended(2), ended(3, late)}, 2},
		"too many, never again":           {experiment.Auto, []record.Trial{ended(1), ended(2), ended(3, late), ended(2)}, 2},
		"fewer were too many": {
			experiment.Auto, []record.Trial{ended(1), ended(2), ended(3, late), ended(2, late), ended(1)}, 1,
		},
		"a doubt unrelated to the machine": {experiment.Auto, []record.Trial{ended(1), ended(2, lost)}, 2},
		"steal from a single trial":        {experiment.Auto, []record.Trial{ended(1), ended(1, late)}, 2},
		"a fixed number":                   {4, []record.Trial{ended(1)}, 4},
		"at most":                          {experiment.Auto, []record.Trial{ended(1), ended(maxAutoLanes)}, maxAutoLanes},
	} {
		if got := MaxParallel(tt.parallel, tt.ended); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// A resumed run uses the measurements of its earlier attempts in the order of their starts, which differs from that of
// the plan: the last start was one too many.
func TestRestoreUse(t *testing.T) {
	begun := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	ended := func(id, after, together int, kinds ...string) record.Trial {
		v := record.Verdict{State: record.Valid, Kinds: kinds}
		if len(kinds) > 0 {
			v.State = record.Suspect
		}
		return record.Trial{
			ID: id, Started: begun.Add(time.Duration(after) * time.Minute), State: record.TrialOK, Concurrent: together - 1,
			Verdict: v, Fidelity: record.Fidelity{OwnCPU: 0.1 * float64(id), OwnMemory: 1},
		}
	}
	plan := []record.Planned{{ID: 1, Cell: 1}, {ID: 2, Cell: 2}, {ID: 3, Cell: 1}, {ID: 4, Cell: 2}}
	r := newCapacity(experiment.Auto)
	r.restoreUse(plan, []record.Trial{ended(1, 2, 5, string(verdict.DriverLate)), ended(2, 1, 4), ended(3, 0, 1)})
	if r.allowed != 4 {
		t.Errorf("%d trials may run at the same time, want 4", r.allowed)
	}
	if got := r.expectedUse(plan[3]).cores; math.Abs(got-0.2) > 1e-9 {
		t.Errorf("a trial of the second cell is expected to use %v cores, want 0.2", got)
	}
}
