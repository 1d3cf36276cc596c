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

// Shortest measurements, in time, that must have figures which are sampled: driver lateness, resource use
// per second, and real links.
const (
	shortestLate   = time.Second
	shortestSample = 2 * time.Second
	shortestReal   = 3 * time.Second
)

// newFidelity returns the fidelity record: link probes, and observations during the measurement.
func newFidelity(l *lab.Lab, links []record.LinkFidelity, m measurement) record.Fidelity {
	f := record.Fidelity{Links: addSeen(links, m.real), EmulatorLateP99US: -1}
	f.Engine, _ = l.Engine()
	f.WorstRTTErrorMS, f.WorstBandwidthError = verdict.WorstLinkErrors(links)
	if late, known := m.worstLateness(); known {
		f.EmulatorLateP99US = late.US
	}
	for _, s := range m.traffic {
		f.EmulatorDrops += int64(s.AB.DroppedQueue + s.BA.DroppedQueue)
	}
	f.ClientCPU = m.drive.ClientCPU()
	f.ClientLateP99US = m.lateUS()
	f.EventLateP99US = verdict.NewEvents(m.events).LateUS
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

// totalUse returns the cores in use on all machines, the number of cores, and the share of CPU time lost to
// hypervisors.
func (m measurement) totalUse() (cores float64, of int, stolen float64) {
	for _, s := range m.machines {
		cores, of, stolen = cores+s.use.Cores, of+int(s.use.Of), stolen+s.steal.Of*s.use.Of
	}
	return cores, of, stolen / float64(max(1, of))
}

// busiestMachine returns the use of the machine with the highest utilisation.
func (m measurement) busiestMachine() (worst verdict.Use) {
	for i, s := range m.machines {
		if i == 0 || s.use.Cores*worst.Of > worst.Cores*s.use.Of {
			worst = s.use
		}
	}
	return worst
}

// mostStolen returns the steal share of the machine that lost the most CPU time to its hypervisor.
func (m measurement) mostStolen() (worst verdict.Share) {
	for i, s := range m.machines {
		if i == 0 || s.steal.Of > worst.Of {
			worst = s.steal
		}
	}
	return worst
}

// worstLateness returns the highest lateness of the emulators. known is false if any emulator cannot report
// it.
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

// worstClock returns the most uncertain clock of the other machines; others is false if the lab runs on
// this machine alone.
func (m measurement) worstClock() (worst verdict.Clock, others bool) {
	for _, s := range m.machines {
		if _, is := s.Part.(machine.RemotePart); !is {
			continue
		}
		c := verdict.Clock{UncertainUS: us(s.clock.Uncertainty), MovedUS: us(s.moved), Machine: s.Name}
		if !others || c.UncertainUS+c.MovedUS > worst.UncertainUS+worst.MovedUS {
			worst, others = c, true
		}
	}
	return worst, others
}

// perMachine returns the figures of each machine, nil if the lab runs on this machine alone.
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
		if t, is := s.Part.(machine.RemotePart); is {
			x.Kernel = t.Kernel()
		}
		for _, n := range s.Facts().Nodes {
			x.Nodes = append(x.Nodes, n.Name)
		}
		all = append(all, x)
	}
	return all
}

// findings are the results of all parts of a trial that the verdict depends on.
type findings struct {
	links   []record.LinkFidelity
	moved   bool // packets are moved by a process that reports lateness, not by the kernel
	flavors verdict.Piece[int]
	measurement
	bound record.Bound
	audit *record.Audit // nil without an audit
}

// evidence returns each piece with its figure, or with the reason why it is missing.
func (f findings) evidence(e experiment.Experiment) verdict.Evidence {
	return verdict.Evidence{
		Links:        verdict.Present(f.links),
		Account:      sinceStart(f.started, f.account),
		EmulatorLate: f.emulatorLate(),
		DriverLate:   f.driverLate(),
		DriverCPU:    f.driverCPU(e),
		HostCPU:      sinceStart(f.started, f.busiestMachine()),
		Bound:        verdict.Present(f.bound),
		Others:       f.othersUse(),
		Steal:        sinceStart(f.started, f.mostStolen()),
		Clocks:       f.clocks(),
		Stolen:       verdict.Present(f.stolen),
		Events:       sinceStart(f.started, verdict.NewEvents(f.events)),
		Stuck:        verdict.Present(f.drive.Stuck),
		Samples:      f.samples(),
		Flavors:      f.flavors,
		Real:         f.realSeen(),
		Audit:        f.audited(e.Audit.Enabled),
	}
}

// sinceStart wraps a figure that counts from the start of the measurement; it is missing if the driver did
// not report that start.
func sinceStart[T any](told bool, figure T) verdict.Piece[T] {
	if !told {
		return verdict.Missing[T]("the driver did not report the start of the measurement")
	}
	return verdict.Present(figure)
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
		return verdict.Missing[verdict.Late]("not reported by the emulator")
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
		return verdict.Missing[float64]("not reported by the driver")
	}
	return verdict.Present(f.lateUS())
}

func (f findings) driverCPU(e experiment.Experiment) verdict.Piece[verdict.Use] {
	if f.drive.CPU <= 0 {
		return verdict.Missing[verdict.Use]("not reported by the driver")
	}
	return verdict.Present(f.fullestClient(e))
}

func (f findings) samples() verdict.Piece[verdict.Samples] {
	if f.drive.Duration < shortestSample {
		return verdict.NotDue[verdict.Samples]()
	}
	return verdict.Present(verdict.Samples{Taken: f.sampled, Due: int(f.drive.Duration / time.Second)})
}

// addSeen adds the observations of real links.
func addSeen(links []record.LinkFidelity, seen map[string]record.LinkSeen) []record.LinkFidelity {
	for i := range links {
		if s, ok := seen[links[i].ID]; ok {
			links[i].Seen = &s
		}
	}
	return links
}

// realSeen counts the real links that were measured during the trial.
func (f findings) realSeen() verdict.Piece[int] {
	real := slices.ContainsFunc(f.links, func(l record.LinkFidelity) bool { return l.Real })
	switch {
	case !real || f.drive.Duration < shortestReal:
		return verdict.NotDue[int]()
	case len(f.real) == 0:
		return verdict.Missing[int]("no echoes were sent")
	}
	return verdict.Present(len(f.real))
}

func (f findings) audited(due bool) verdict.Piece[record.Audit] {
	switch {
	case f.audit != nil:
		return verdict.Present(*f.audit)
	case due:
		return verdict.Missing[record.Audit]("not read back")
	}
	return verdict.NotDue[record.Audit]()
}

// newLimits returns the experiment's fidelity limits.
func newLimits(e experiment.Experiment) verdict.Limits {
	f := e.Fidelity
	return verdict.Limits{
		RTTErrorMS: ms(f.RTTError.Duration()), BandwidthError: float64(f.BandwidthError),
		EventLateUS: us(f.EventLate.Duration()), EmulatorLateUS: us(f.EmulatorLate.Duration()), ClientLateUS: us(f.ClientLate.Duration()),
		ClientCPUShare: float64(
			f.ClientCPU,
		), HostCPUShare: float64(f.HostCPU), StealShare: float64(f.Steal), OthersShare: float64(f.Others), Moved: float64(f.Moved),
	}
}
