package trial

import (
	"slices"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/machine"
	"skerry/internal/record"
)

// What a measurement must last before it is asked for figures that are taken now and then: how
// late the driver wakes up, and once a second what nodes and machine use and how real links are.
const (
	shortestLate   = time.Second
	shortestSample = 2 * time.Second
	shortestReal   = 3 * time.Second
)

// newFidelity is what the run directory keeps of what was probed before and seen while the
// workload ran.
func newFidelity(l *lab.Lab, links []record.LinkFidelity, m measurement) record.Fidelity {
	f := record.Fidelity{Links: addSeen(links, m.real), EmulatorLateP99US: -1}
	f.Engine, _ = l.Engine()
	f.WorstRTTErrorMS, f.WorstBandwidthError = verdict.Worst(links)
	if late, known := m.worstLateness(); known {
		f.EmulatorLateP99US = late.US
	}
	for _, s := range m.traffic {
		f.EmulatorDrops += int64(s.AB.DroppedQueue + s.BA.DroppedQueue)
	}
	f.ClientCPU = m.drive.ClientCPU()
	f.ClientLateP99US = m.lateUS()
	f.EventLateP99US = verdict.EventsOf(m.events).LateUS
	f.HostCPUMax = m.hostCPUMax
	f.HostCPU, f.HostCores, f.StealShare = m.totalUse()
	f.Machines = m.perMachine()
	f.Stolen, f.Account = &m.stolen, &m.account
	if use, known := m.otherUse.Figure(); known {
		f.OthersCPU = &use.Cores
	} else {
		f.OthersUnknown, _ = m.otherUse.Unknown()
	}
	f.OwnCPU, f.OwnMemory = m.use.own()
	return f
}

// totalUse is the cores that everything on all machines used, of how many, and the share of their
// processor time that hypervisors took.
func (m measurement) totalUse() (cores float64, of int, stolen float64) {
	for _, s := range m.machines {
		cores, of, stolen = cores+s.use.Cores, of+int(s.use.Of), stolen+s.steal.Of*s.use.Of
	}
	return cores, of, stolen / float64(max(1, of))
}

// busiestMachine is the machine that was the busiest of its cores.
func (m measurement) busiestMachine() (worst verdict.Use) {
	for i, s := range m.machines {
		if i == 0 || s.use.Cores*worst.Of > worst.Cores*s.use.Of {
			worst = s.use
		}
	}
	return worst
}

// mostStolen is the machine that lost the most to its hypervisor.
func (m measurement) mostStolen() (worst verdict.Share) {
	for i, s := range m.machines {
		if i == 0 || s.steal.Of > worst.Of {
			worst = s.steal
		}
	}
	return worst
}

// worstLateness is the lateness of the emulator that was the latest; not known where one cannot know.
func (m measurement) worstLateness() (worst verdict.Late, known bool) {
	for i, s := range m.machines {
		if !s.late.Known {
			return verdict.Late{}, false
		}
		if late := us(s.late.P99); i == 0 || late > worst.US {
			worst = verdict.Late{US: late, Machine: s.Name}
		}
	}
	return worst, len(m.machines) > 0
}

// worstClock is the clock that is known the least; there is none where the lab is on this machine alone.
func (m measurement) worstClock() (worst verdict.Clock, others bool) {
	for _, s := range m.machines {
		if _, is := s.Part.(machine.Timed); !is {
			continue
		}
		c := verdict.Clock{UncertainUS: us(s.clock.Uncertainty), MovedUS: us(s.moved), Machine: s.Name}
		if !others || c.UncertainUS+c.MovedUS > worst.UncertainUS+worst.MovedUS {
			worst, others = c, true
		}
	}
	return worst, others
}

// perMachine is what each machine had to do with the trial; nil where the lab is on this one alone.
func (m measurement) perMachine() (all []record.MachineFidelity) {
	for _, s := range m.machines {
		if s.Name == "" {
			continue
		}
		x := record.MachineFidelity{
			Name: s.Name, CPU: s.use.Cores, Cores: int(s.use.Of), StealShare: s.steal.Of, EmulatorLateP99US: -1,
			ClockAheadUS: us(s.clock.Offset), ClockUncertainUS: us(s.clock.Uncertainty), ClockMovedUS: us(s.moved),
		}
		if s.late.Known {
			x.EmulatorLateP99US = us(s.late.P99)
		}
		if t, is := s.Part.(machine.Timed); is {
			x.Kernel = t.Kernel()
		}
		for _, n := range s.Facts().Nodes {
			x.Nodes = append(x.Nodes, n.Name)
		}
		all = append(all, x)
	}
	return all
}

// findings is what the parts of a trial found, of which its verdict is formed.
type findings struct {
	links   []record.LinkFidelity
	moved   bool // by a process, which knows how late packets were, and not by the kernel
	flavors verdict.Piece[int]
	measurement
	bound record.Bound
	audit *record.Audit // nil without one
}

// evidence hands each piece over with its figure, or with the reason why there is none.
func (f findings) evidence(e experiment.Experiment) verdict.Evidence {
	return verdict.Evidence{
		Links:        verdict.Of(f.links),
		Account:      sinceStart(f.started, f.account),
		EmulatorLate: f.emulatorLate(),
		DriverLate:   f.driverLate(),
		DriverCPU:    f.driverCPU(e),
		HostCPU:      sinceStart(f.started, f.busiestMachine()),
		Bound:        verdict.Of(f.bound),
		Others:       f.othersUse(),
		Steal:        sinceStart(f.started, f.mostStolen()),
		Clocks:       f.clocks(),
		Stolen:       verdict.Of(f.stolen),
		Events:       sinceStart(f.started, verdict.EventsOf(f.events)),
		Stuck:        verdict.Of(f.drive.Stuck),
		Samples:      f.samples(),
		Flavors:      f.flavors,
		Real:         f.realSeen(),
		Audit:        f.audited(e.Audit.Enabled),
	}
}

// sinceStart is a piece that was counted from the begin of the measurement on, where that was told.
func sinceStart[T any](told bool, figure T) verdict.Piece[T] {
	if !told {
		return verdict.Missing[T]("the driver did not tell when the measurement began")
	}
	return verdict.Of(figure)
}

func (f findings) othersUse() verdict.Piece[verdict.Use] {
	if !f.started {
		return sinceStart(false, verdict.Use{})
	}
	return f.otherUse
}

func (f findings) emulatorLate() verdict.Piece[verdict.Late] {
	if !f.moved {
		return verdict.NotDue[verdict.Late]()
	}
	late, known := f.worstLateness()
	if f.started && !known {
		return verdict.Missing[verdict.Late]("the emulator did not tell it")
	}
	return sinceStart(f.started, late)
}

func (f findings) clocks() verdict.Piece[verdict.Clock] {
	worst, others := f.worstClock()
	if !others {
		return verdict.NotDue[verdict.Clock]()
	}
	return sinceStart(f.started, worst)
}

func (f findings) driverLate() verdict.Piece[float64] {
	if f.drive.Late.Count() == 0 && f.drive.Duration >= shortestLate {
		return verdict.Missing[float64]("the driver did not tell it")
	}
	return verdict.Of(f.lateUS())
}

func (f findings) driverCPU(e experiment.Experiment) verdict.Piece[verdict.Use] {
	if f.drive.CPU <= 0 {
		return verdict.Missing[verdict.Use]("the driver did not tell it")
	}
	return verdict.Of(f.fullestClient(e))
}

func (f findings) samples() verdict.Piece[verdict.Samples] {
	if f.drive.Duration < shortestSample {
		return verdict.NotDue[verdict.Samples]()
	}
	return verdict.Of(verdict.Samples{Taken: f.sampled, Due: int(f.drive.Duration / time.Second)})
}

// addSeen adds to the links what those were that are left as they are.
func addSeen(links []record.LinkFidelity, seen map[string]record.LinkSeen) []record.LinkFidelity {
	for i := range links {
		if s, ok := seen[links[i].ID]; ok {
			links[i].Seen = &s
		}
	}
	return links
}

// realSeen counts the real links that were measured while the trial went on.
func (f findings) realSeen() verdict.Piece[int] {
	real := slices.ContainsFunc(f.links, func(l record.LinkFidelity) bool { return l.Real })
	switch {
	case !real || f.drive.Duration < shortestReal:
		return verdict.NotDue[int]()
	case len(f.real) == 0:
		return verdict.Missing[int]("no echo was sent over them")
	}
	return verdict.Of(len(f.real))
}

func (f findings) audited(due bool) verdict.Piece[record.Audit] {
	switch {
	case f.audit != nil:
		return verdict.Of(*f.audit)
	case due:
		return verdict.Missing[record.Audit]("they were not read back")
	}
	return verdict.NotDue[record.Audit]()
}

// newLimits are what an experiment's trials may deviate by.
func newLimits(e experiment.Experiment) verdict.Limits {
	f := e.Fidelity
	return verdict.Limits{
		RTTErrorMS: ms(f.RTTError.Duration()), BandwidthError: float64(f.BandwidthError),
		EventLateUS: us(f.EventLate.Duration()), EmulatorLateUS: us(f.EmulatorLate.Duration()), ClientLateUS: us(f.ClientLate.Duration()),
		ClientCPUShare: float64(f.ClientCPU), HostCPUShare: float64(f.HostCPU), StealShare: float64(f.Steal), OthersShare: float64(f.Others), Moved: float64(f.Moved),
	}
}
