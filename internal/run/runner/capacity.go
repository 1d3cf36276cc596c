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
	// fullShare of the machine's cores and memory may be used by trials at the same time: what
	// they use is a mean over their measurement, and comes in bursts.
	maxShare = 0.7
	// mostLanes at auto: more labs than that the kernel's own work shows.
	maxAutoLanes = 8
)

// use is what a trial used of the machine: cores on average, and bytes of memory.
type use struct {
	cores  float64
	memory int64
}

// capacity is how many trials this machine takes at the same time. What trials use is one bound. At auto
// how well they did is another, since a sum of means does not tell what trials cost each other:
//
//  1. A trial at a long distance, which uses little, is the first that ends. All others count as
//     that, as long as nothing else is known: eight begin at once.
//  2. They need the machine's processors together. All eight are suspect and are run again, one
//     by one.
//
// So one more trial at a time is tried, and only after as many went well. A number of trials of which
// one became suspect is never tried again.
type capacity struct {
	machine  use
	maxLanes int
	cells    map[int]cellUse // of trials that have ended
	largest  int64           // memory of any
	allowed  int             // how many may run at the same time by how well those that ended did; 0: not asked
	tooMany  int             // how many were too many; 0: none yet
}

// cellUse is what trials of a cell have used at the most.
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

// admits tells whether a trial may run beside others. As long as nothing is known, a trial runs alone.
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

// expectedUse is what trials of the cell have used. One that has none yet counts as the mean of those cells
// that have the most parameters in common with it, and takes as much memory as any has.
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
	return use{cores: stats.Of(cores).Mean, memory: r.largest}
}

// recordUse takes in what a trial that ended used.
func (r *capacity) recordUse(p record.Planned, t record.Trial) {
	u := use{t.Fidelity.OwnCPU, t.Fidelity.OwnMemory}
	if t.State != record.TrialOK || u.cores <= 0 {
		return
	}
	was := r.cells[p.Cell]
	r.cells[p.Cell] = cellUse{use{max(was.cores, u.cores), max(was.memory, u.memory)}, p.Parameters}
	r.largest = max(r.largest, u.memory)
	if r.allowed > 0 {
		r.adjustLimit(t.Beside+1, t)
	}
}

// restoreUse takes in what trials of earlier attempts at the run used, in the order in which they began.
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

// adjustLimit takes in how well a trial did that ran as one of so many at the same time.
func (r *capacity) adjustLimit(together int, t record.Trial) {
	switch {
	case t.Verdict.State != record.Suspect && together >= r.allowed && (r.tooMany == 0 || together+1 < r.tooMany):
		r.allowed = together + 1
	case together > 1 && worthRetry(t) && (r.tooMany == 0 || together < r.tooMany):
		r.tooMany, r.allowed = together, min(r.allowed, together-1)
	}
}

// MaxParallel is how many trials may run at the same time on this machine, each as large as the largest of
// those that have ended, by how well these did; 1 as long as none has ended.
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
