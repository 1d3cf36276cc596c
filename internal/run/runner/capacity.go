package runner

import (
	"reflect"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"skerry/internal/evidence/stats"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

const (
	// maxShare is the share of cores and memory that concurrent trials may use. Their use is a mean over the
	// measurement, with bursts above.
	maxShare = 0.7
	// maxAutoLanes bounds auto: the kernel's own work limits more labs.
	maxAutoLanes = 8
)

// use is the resource use of a trial: mean cores, and bytes of memory.
type use struct {
	cores  float64
	memory int64
}

// capacity limits how many trials run concurrently on this machine. One bound is the resource use of
// trials. With auto, their verdicts are another, because a sum of means does not show how trials affect
// each other:
//
//  1. A trial at a long distance uses little and ends first. Other trials are assumed to use as much until known: eight start at once.
//  2. Together they overload the CPUs. All eight are suspect and run again, one by one.
//
// Therefore the limit grows by one after that many good trials. A number of concurrent trials with a
// suspect one is never tried again.
type capacity struct {
	machine  use
	maxLanes int
	cells    map[int]cellUse // of ended trials
	largest  int64           // highest memory of any trial
	allowed  int             // concurrent trials that the verdicts allow; 0 if not limited
	tooMany  int             // smallest number with a suspect trial; 0 if none
}

type cellUse struct {
	use
	parameters map[string]any
}

func newCapacity(p experiment.Parallel) *capacity {
	r := &capacity{machine: use{cores: float64(runtime.NumCPU())}, maxLanes: max(1, int(p)), cells: map[int]cellUse{}}
	if p == experiment.Auto {
		r.maxLanes, r.allowed = maxAutoLanes, 1
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		r.machine.memory = int64(info.Totalram) * int64(info.Unit)
	}
	return r
}

// admits reports whether a trial may start. Until some trial has ended, trials run alone.
func (r *capacity) admits(running []record.Planned, next record.Planned) bool {
	if len(running) == 0 {
		return true
	}
	if len(running) >= r.maxLanes || len(r.cells) == 0 || r.allowed > 0 && len(running) >= r.allowed {
		return false
	}
	sum := r.expectedUse(next)
	for _, p := range running {
		u := r.expectedUse(p)
		sum.cores, sum.memory = sum.cores+u.cores, sum.memory+u.memory
	}
	return sum.cores <= maxShare*r.machine.cores && float64(sum.memory) <= maxShare*float64(r.machine.memory)
}

// expectedUse returns the use of the cell's trials. For a cell without trials it is the mean of the cells
// with the most parameters in common, and the highest memory of all.
func (r *capacity) expectedUse(p record.Planned) use {
	if u, ok := r.cells[p.Cell]; ok {
		return u.use
	}
	most, cores := -1, []float64(nil)
	for _, u := range r.cells {
		common := 0
		for name, value := range u.parameters {
			if reflect.DeepEqual(value, p.Parameters[name]) {
				common++
			}
		}
		if common > most {
			most, cores = common, nil
		}
		if common == most {
			cores = append(cores, u.cores)
		}
	}
	return use{cores: stats.EstimateMean(cores).Mean, memory: r.largest}
}

func (r *capacity) recordUse(p record.Planned, t record.Trial) {
	u := use{t.Fidelity.OwnCPU, t.Fidelity.OwnMemory}
	if t.State != record.TrialOK || u.cores <= 0 {
		return
	}
	was := r.cells[p.Cell]
	r.cells[p.Cell] = cellUse{use{max(was.cores, u.cores), max(was.memory, u.memory)}, p.Parameters}
	r.largest = max(r.largest, u.memory)
	if r.allowed > 0 {
		r.adjustLimit(t.Concurrent+1, t)
	}
}

// restoreUse records the trials of earlier attempts at the run, in the order of their start.
func (r *capacity) restoreUse(plan []record.Planned, ended []record.Trial) {
	planned := map[int]record.Planned{}
	for _, p := range plan {
		planned[p.ID] = p
	}
	slices.SortStableFunc(ended, func(a, b record.Trial) int { return a.Started.Compare(b.Started) })
	for _, t := range ended {
		r.recordUse(planned[t.ID], t)
	}
}

func (r *capacity) adjustLimit(together int, t record.Trial) {
	switch {
	case t.Verdict.State != record.Suspect && together >= r.allowed && (r.tooMany == 0 || together+1 < r.tooMany):
		r.allowed = together + 1
	case together > 1 && worthRetry(t) && (r.tooMany == 0 || together < r.tooMany):
		r.tooMany, r.allowed = together, min(r.allowed, together-1)
	}
}

// MaxParallel returns how many trials as large as the largest ended one may run concurrently; 1 if none has
// ended.
func MaxParallel(p experiment.Parallel, ended []record.Trial) int {
	r := newCapacity(p)
	for _, t := range ended {
		r.recordUse(record.Planned{}, t) // of one cell, which is as large as the largest
	}
	var running []record.Planned
	for len(running) < r.maxLanes && r.admits(running, record.Planned{}) {
		running = append(running, record.Planned{})
	}
	return len(running)
}
