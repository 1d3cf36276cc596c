package trial

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"skerry/internal/evidence/sample"
	"skerry/internal/evidence/steal"
	"skerry/internal/evidence/verdict"
	"skerry/internal/lab"
	"skerry/internal/machine/files"
)

// labs are those of a run that are up: what they use is not the work of others, whichever trial they are of.
type labs struct {
	mu  sync.Mutex
	all []*lab.Lab
}

func (t *Turns) add(l *lab.Lab) {
	if t == nil {
		return
	}
	t.labs.mu.Lock()
	defer t.labs.mu.Unlock()
	if !slices.Contains(t.labs.all, l) {
		t.labs.all = append(t.labs.all, l)
	}
}

func (t *Turns) remove(l *lab.Lab) {
	if t == nil {
		return
	}
	t.labs.mu.Lock()
	defer t.labs.mu.Unlock()
	t.labs.all = slices.DeleteFunc(t.labs.all, func(x *lab.Lab) bool { return x == l })
}

// with are a trial's lab, the first, and those of trials that run at the same time.
func (t *Turns) with(l *lab.Lab) []*lab.Lab {
	if t == nil {
		return []*lab.Lab{l}
	}
	t.labs.mu.Lock()
	defer t.labs.mu.Unlock()
	return append([]*lab.Lab{l}, slices.DeleteFunc(slices.Clone(t.labs.all), func(x *lab.Lab) bool { return x == l })...)
}

// cpuUse is the processor time of the machine's processes, and the run's part of it.
type cpuUse struct {
	at        time.Time
	processes time.Duration
	cores     int
	self      time.Duration // this process
	labs      map[*lab.Lab]time.Duration
	unknown   string // why the run's part is not known
}

// readCPUUse reads that of this machine. On machines that are reached through agents it is not known: an agent is
// not told apart from other programs.
func readCPUUse(ctx context.Context, all []*lab.Lab) (a cpuUse, err error) {
	on := files.Local{}
	a.labs = map[*lab.Lab]time.Duration{}
	for i, l := range all {
		a.labs[l], a.unknown, err = ownCPU(ctx, l)
		if err != nil && i > 0 && ctx.Err() == nil { // another trial's failure is none of this one
			a.unknown, err = fmt.Sprintf("another trial's lab cannot be read: %v", err), nil
		}
		if err != nil || a.unknown != "" {
			return a, err
		}
	}
	if a.self, err = sample.ProcessCPU(ctx, on, os.Getpid()); err != nil {
		return a, err
	}
	used, err := sample.ReadMachine(ctx, on)
	a.processes, a.cores, a.at = used.Processes, used.Cores, time.Now()
	return a, err
}

// ownCPU is the processor time that a lab's nodes and helpers have used, or why it is not known.
func ownCPU(ctx context.Context, l *lab.Lab) (cpu time.Duration, unknown string, err error) {
	for _, m := range l.Machines() {
		if _, here := m.Files().(files.Local); !here {
			return 0, "the lab is on other machines", nil
		}
		facts := m.Facts()
		for _, pid := range []int{facts.Emulator, facts.Tunneller} {
			if pid == 0 {
				continue
			}
			used, err := sample.ProcessCPU(ctx, m.Files(), pid)
			if err != nil {
				return 0, "", err
			}
			cpu += used
		}
	}
	for _, h := range l.Hosts() {
		u, err := h.Usage()
		if err != nil {
			return 0, "", fmt.Errorf("read the processor time of %s: %w", h.Name(), err)
		}
		if !u.Grouped && u.CPU > 0 {
			return 0, "no control group counts the processor time of " + h.Name(), nil
		}
		cpu += u.CPU
	}
	return cpu, "", nil
}

// byOwnTrials tells whether trials of the run are what took processors from each other: others ran at the same time,
// and neither other programs nor the hypervisor used as much as counts.
func (m measurement) byOwnTrials() bool {
	use, known := m.others.Figure()
	return known && m.beside > 0 && use.Cores < steal.Foreign*use.Of && m.robbed().Of < steal.Foreign
}

// others is what processes used between two readings that are none of the run's. In less time than shortestSample
// the machine's counters, which go by hundredths of a second, tell too little.
func others(before, after cpuUse) verdict.Piece[verdict.Use] {
	took := after.at.Sub(before.at)
	for _, a := range []cpuUse{before, after} {
		if a.unknown != "" {
			return verdict.Unknown[verdict.Use](a.unknown)
		}
	}
	if took < shortestSample || after.cores == 0 {
		return verdict.NotDue[verdict.Use]()
	}
	used := after.processes - before.processes - (after.self - before.self)
	for l, was := range before.labs {
		now, up := after.labs[l]
		if !up {
			return verdict.Unknown[verdict.Use]("the lab of another trial went down meanwhile")
		}
		used -= now - was
	}
	of := float64(after.cores)
	return verdict.Of(verdict.Use{Cores: min(of, max(0, used.Seconds()/took.Seconds())), Of: of})
}
