package runner

import (
	"testing"

	"skerry/internal/experiment"
	"skerry/internal/record"
)

func TestRoom(t *testing.T) {
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
		"the first one":              {experiment.Auto, nil, nil, true},
		"nothing known":              {experiment.Auto, nil, []int{1}, false},
		"room":                       {experiment.Auto, map[int]record.Trial{9: measured(0.4, 1)}, []int{9, 9}, true},
		"no cores":                   {experiment.Auto, map[int]record.Trial{9: measured(0.5, 1)}, []int{9, 9}, false},
		"no memory":                  {experiment.Auto, map[int]record.Trial{9: measured(0.1, 400)}, []int{9}, false},
		"unknown as largest":         {experiment.Auto, map[int]record.Trial{1: measured(1, 1), 9: measured(0.1, 1)}, []int{2}, true},
		"unknown, too large":         {experiment.Auto, map[int]record.Trial{1: measured(1.4, 1), 9: measured(0.1, 1)}, []int{2}, false},
		"as many as are asked":       {2, map[int]record.Trial{9: measured(0.1, 1)}, []int{9, 9}, false},
		"one at a time":              {1, map[int]record.Trial{9: measured(0.1, 1)}, []int{9}, false},
		"a failed one tells nothing": {experiment.Auto, map[int]record.Trial{9: {State: record.TrialFailed, Fidelity: record.Fidelity{OwnCPU: 0.1}}}, []int{9}, false},
	} {
		r := roomFor(tt.most)
		r.machine = use{2, 1000}
		for cell, x := range tt.learnt {
			r.learn(record.Planned{Cell: cell}, x)
		}
		if got := r.admits(planned(tt.running...), record.Planned{ID: 100, Cell: 9}); got != tt.want {
			t.Errorf("%s: admits %v", name, got)
		}
	}
}
