package trial

import (
	"runtime"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/record"
)

// What a measurement must last before it is asked for figures that are taken now and then: how
// late the driver wakes up, and once a second what nodes and machine use.
const (
	shortestLate   = time.Second
	shortestSample = 2 * time.Second
)

// fidelityOf is what the run directory keeps of what was probed before and seen while the
// workload ran.
func fidelityOf(l *lab.Lab, links []record.LinkFidelity, m measurement) record.Fidelity {
	f := record.Fidelity{Links: links, EmulatorLateP99US: -1}
	f.Engine, _ = l.Engine()
	f.WorstRTTErrorMS, f.WorstBandwidthError = verdict.Worst(links)
	if m.late.Known {
		f.EmulatorLateP99US = us(m.late.P99)
	}
	for _, s := range m.traffic {
		f.EmulatorDrops += int64(s.AB.DroppedQueue + s.BA.DroppedQueue)
	}
	f.ClientCPU = m.drive.ClientCPU()
	f.ClientLateP99US = m.lateUS()
	f.EventLateP99US = verdict.EventsOf(m.events).LateUS
	f.HostCores = runtime.NumCPU()
	f.HostCPUMax = m.hostCPUMax
	f.HostCPU, f.StealShare = m.machineUse()
	f.Stolen = &m.stolen
	f.OwnCPU, f.OwnMemory = m.use.own()
	return f
}

// machineUse is the cores that everything on the machine used, and the share of its processor
// time that its hypervisor took; 0 of a measurement that took no time. The counters go by hundredths of
// a second, by which use may seem more than there is.
func (m measurement) machineUse() (cores, stolen float64) {
	if m.span <= 0 {
		return 0, 0
	}
	s, all := m.span.Seconds(), float64(runtime.NumCPU())
	return min(all, m.machine.Busy.Seconds()/s), min(1, m.machine.Steal.Seconds()/s/all)
}

// found is what the parts of a trial found, of which its verdict is formed.
type found struct {
	links   []record.LinkFidelity
	moved   bool // by a process, which knows how late packets were, and not by the kernel
	flavors verdict.Piece[int]
	measurement
	bound record.Bound
	audit *record.Audit // nil without one
}

// evidence hands each piece over with its figure, or with the reason why there is none.
func (f found) evidence(e experiment.Experiment) verdict.Evidence {
	cores, stolen := f.machineUse()
	return verdict.Evidence{
		Links:        verdict.Of(f.links),
		EmulatorLate: f.emulatorLate(),
		DriverLate:   f.driverLate(),
		DriverCPU:    f.driverCPU(e),
		HostCPU:      counted(f.begun, verdict.Use{Cores: cores, Of: float64(runtime.NumCPU())}),
		Bound:        verdict.Of(f.bound),
		Steal:        counted(f.begun, stolen),
		Stolen:       verdict.Of(f.stolen),
		Events:       counted(f.begun, verdict.EventsOf(f.events)),
		Stuck:        verdict.Of(f.drive.Stuck),
		Samples:      f.samples(),
		Flavors:      f.flavors,
		Audit:        f.audited(e.Audit.Enabled),
	}
}

// counted is a piece that was counted from the begin of the measurement on, where that was told.
func counted[T any](begun bool, figure T) verdict.Piece[T] {
	if !begun {
		return verdict.Missing[T]("the driver did not tell when the measurement began")
	}
	return verdict.Of(figure)
}

func (f found) emulatorLate() verdict.Piece[float64] {
	switch {
	case !f.moved:
		return verdict.NotDue[float64]()
	case !f.late.Known:
		return verdict.Missing[float64]("the emulator did not tell it")
	}
	return counted(f.begun, us(f.late.P99))
}

func (f found) driverLate() verdict.Piece[float64] {
	if f.drive.Late.Count() == 0 && f.drive.Duration >= shortestLate {
		return verdict.Missing[float64]("the driver did not tell it")
	}
	return verdict.Of(f.lateUS())
}

func (f found) driverCPU(e experiment.Experiment) verdict.Piece[verdict.Use] {
	if f.drive.CPU <= 0 {
		return verdict.Missing[verdict.Use]("the driver did not tell it")
	}
	return verdict.Of(f.fullestClient(e))
}

func (f found) samples() verdict.Piece[verdict.Samples] {
	if f.drive.Duration < shortestSample {
		return verdict.NotDue[verdict.Samples]()
	}
	return verdict.Of(verdict.Samples{Taken: f.sampled, Due: int(f.drive.Duration / time.Second)})
}

func (f found) audited(due bool) verdict.Piece[record.Audit] {
	switch {
	case f.audit != nil:
		return verdict.Of(*f.audit)
	case due:
		return verdict.Missing[record.Audit]("they were not read back")
	}
	return verdict.NotDue[record.Audit]()
}

// limitsOf are what an experiment's trials may deviate by.
func limitsOf(e experiment.Experiment) verdict.Limits {
	f := e.Fidelity
	return verdict.Limits{
		RTTErrorMS: ms(f.RTTError.Duration()), BandwidthError: float64(f.BandwidthError),
		EventLateUS: us(f.EventLate.Duration()), EmulatorLateUS: us(f.EmulatorLate.Duration()), ClientLateUS: us(f.ClientLate.Duration()),
		ClientCPUShare: float64(f.ClientCPU), HostCPUShare: float64(f.HostCPU), StealShare: float64(f.Steal), Moved: float64(f.Moved),
	}
}
