package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/evidence/sample"
	"skerry/internal/evidence/verdict"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/record"
)

// counterSnapshot holds the counters of links and machines at one moment.
type counterSnapshot struct {
	links    []link.Stats
	machines []machineCounters
	cpu      cpuReading
}

type machineCounters struct {
	machine.Member
	at    time.Time
	used  sample.MachineUsage
	late  link.Lateness // since the last reset
	clock machine.Clock // zero on this machine
}

// readCounters reads all counters; reset starts a new count of lateness.
func (w *watch) readCounters(reset bool) (s counterSnapshot, err error) {
	s.links, err = w.env.lab.Stats(w.ctx)
	members := w.env.lab.Machines()
	s.machines = make([]machineCounters, len(members))
	var all errgroup.Group
	for i, m := range members {
		all.Go(func() (err error) {
			s.machines[i], err = readMachine(w.ctx, m, reset)
			return err
		})
	}
	all.Go(func() (err error) {
		s.cpu, err = readCPUUse(w.ctx, w.env.phases.labsWith(w.env.lab))
		return err
	})
	return s, errors.Join(err, all.Wait())
}

func readMachine(ctx context.Context, m machine.Member, reset bool) (machineCounters, error) {
	c := machineCounters{Member: m}
	var errs [3]error
	c.late, errs[0] = m.Lateness(ctx, reset)
	c.used, errs[1] = sample.ReadMachineUsage(ctx, m.Files())
	c.at = time.Now()
	if t, is := m.Part.(machine.RemotePart); is {
		c.clock, errs[2] = t.Clock(ctx)
	}
	return c, errors.Join(errs[:]...)
}

// machineSpan is what a machine did between two snapshots.
type machineSpan struct {
	machine.Member
	use   verdict.Use   // mean cores
	steal verdict.Share // share of CPU time
	late  link.Lateness
	clock machine.Clock // at the start
	moved time.Duration // absolute drift of the clock
}

func machineSpans(before, after counterSnapshot) []machineSpan {
	all := make([]machineSpan, len(after.machines))
	for i, a := range after.machines {
		all[i] = newMachineSpan(before.machines[i], a)
	}
	return all
}

// newMachineSpan leaves use at zero if no time has passed. Counters have a resolution of 10 ms, so that use
// is capped at the number of cores.
func newMachineSpan(b, a machineCounters) machineSpan {
	s := machineSpan{Member: a.Member, late: a.late, clock: b.clock, moved: (a.clock.Offset - b.clock.Offset).Abs()}
	s.use, s.steal = verdict.Use{Of: float64(a.used.Cores), Machine: a.Name}, verdict.Share{Machine: a.Name}
	if took := a.at.Sub(b.at).Seconds(); took > 0 && s.use.Of > 0 {
		s.use.Cores = min(s.use.Of, (a.used.Busy-b.used.Busy).Seconds()/took)
		s.steal.Of = min(1, (a.used.Steal-b.used.Steal).Seconds()/took/s.use.Of)
	}
	return s
}

// runSampler records the use of nodes, emulators and machines, each second from zero.
func (w *watch) runSampler(zero time.Time) error {
	l := w.env.lab
	s := &sample.Sampler{Hosts: l.Hosts(), Traffic: w.nodeTraffic}
	for _, m := range l.Machines() {
		f := m.Facts()
		s.Machines = append(s.Machines, sample.Machine{Files: m.Files(), Emulator: f.Emulator, Tunneller: f.Tunneller})
	}
	if w.governor != nil {
		s.FlavorState = w.governor.State
	}
	servers := w.serversHere
	return s.Run(w.ctx, zero, func(rows []record.NodeSecond) error {
		if servers { // they are no other programs
			rows[len(rows)-1].Foreign = 0
		}
		w.report.live.AddNodes(rows)
		w.addSamples(rows)
		if err := w.report.writer.NodeSeconds(rows...); err != nil {
			return recordError{err}
		}
		return nil
	})
}

// nodeTraffic sums the links' bytes by node, and records the link account of the second that ends.
func (w *watch) nodeTraffic(ctx context.Context) (sample.Traffic, error) {
	t := sample.Traffic{Tx: map[string]uint64{}, Rx: map[string]uint64{}}
	links, err := w.env.lab.Stats(ctx)
	if err != nil {
		return t, err
	}
	at, counted := time.Now(), byID(links)
	if w.events != nil {
		w.events.traffic.add(at, links)
	}
	if err := w.report.writer.DirectionSeconds(w.account.addReading(at, counted, w.env.lab.Links())...); err != nil {
		return t, recordError{err}
	}
	for _, l := range w.env.lab.Links() {
		s := counted[l.ID]
		t.Tx[l.A] += s.AB.Bytes
		t.Rx[l.B] += s.AB.Bytes
		t.Tx[l.B] += s.BA.Bytes
		t.Rx[l.A] += s.BA.Bytes
	}
	return t, nil
}

func byID(links []link.Stats) map[string]link.Stats {
	m := make(map[string]link.Stats, len(links))
	for _, s := range links {
		m[s.ID] = s
	}
	return m
}

// subtractStats returns the counts between two readings.
func subtractStats(before, after []link.Stats) []link.Stats {
	was := byID(before)
	out := make([]link.Stats, len(after))
	for i, s := range after {
		b := was[s.ID]
		out[i] = link.Stats{ID: s.ID, AB: s.AB.Sub(b.AB), BA: s.BA.Sub(b.BA)}
	}
	return out
}

// labs are the labs of a run that are up. Their CPU time is not foreign, whichever trial they belong to.
type labs struct {
	mu  sync.Mutex
	all []*lab.Lab
}

func (t *PhaseScheduler) addLab(l *lab.Lab) {
	if t == nil {
		return
	}
	t.labs.mu.Lock()
	defer t.labs.mu.Unlock()
	if !slices.Contains(t.labs.all, l) {
		t.labs.all = append(t.labs.all, l)
	}
}

func (t *PhaseScheduler) removeLab(l *lab.Lab) {
	if t == nil {
		return
	}
	t.labs.mu.Lock()
	defer t.labs.mu.Unlock()
	t.labs.all = slices.DeleteFunc(t.labs.all, func(x *lab.Lab) bool { return x == l })
}

// labsWith returns l followed by the labs of concurrent trials.
func (t *PhaseScheduler) labsWith(l *lab.Lab) []*lab.Lab {
	if t == nil {
		return []*lab.Lab{l}
	}
	t.labs.mu.Lock()
	defer t.labs.mu.Unlock()
	return append([]*lab.Lab{l}, slices.DeleteFunc(slices.Clone(t.labs.all), func(x *lab.Lab) bool { return x == l })...)
}

// cpuReading is the CPU time of the machine's processes, and the run's part of it.
type cpuReading struct {
	at        time.Time
	processes time.Duration
	cores     int
	self      time.Duration // this process
	labs      map[*lab.Lab]time.Duration
	unknown   string // why the run's part is unknown
}

// readCPUUse reads this machine only. On machines with agents the run's part is unknown, because an agent
// cannot be distinguished from other programs.
func readCPUUse(ctx context.Context, all []*lab.Lab) (a cpuReading, err error) {
	on := files.Local{}
	a.labs = map[*lab.Lab]time.Duration{}
	for i, l := range all {
		a.labs[l], a.unknown, err = labCPU(ctx, l)
		if err != nil && i > 0 && ctx.Err() == nil { // another trial's failure must not end this one
			a.unknown, err = fmt.Sprintf("cannot read the lab of another trial: %v", err), nil
		}
		if err != nil || a.unknown != "" {
			return a, err
		}
	}
	if a.self, err = sample.ReadProcessCPU(ctx, on, os.Getpid()); err != nil {
		return a, err
	}
	used, err := sample.ReadMachineUsage(ctx, on)
	a.processes, a.cores, a.at = used.Processes, used.Cores, time.Now()
	return a, err
}

// labCPU returns the CPU time of a lab's nodes and helpers, or why it is unknown.
func labCPU(ctx context.Context, l *lab.Lab) (cpu time.Duration, unknown string, err error) {
	for _, m := range l.Machines() {
		if _, here := m.Files().(files.Local); !here {
			return 0, "the lab is on other machines", nil
		}
		facts := m.Facts()
		for _, pid := range []int{facts.Emulator, facts.Tunneller} {
			if pid == 0 {
				continue
			}
			used, err := sample.ReadProcessCPU(ctx, m.Files(), pid)
			if err != nil {
				return 0, "", err
			}
			cpu += used
		}
	}
	for _, h := range l.Hosts() {
		u, err := h.Usage()
		if err != nil {
			return 0, "", fmt.Errorf("read CPU time of %s: %w", h.Name(), err)
		}
		if !u.Grouped && u.CPU > 0 {
			return 0, "no control group counts the CPU time of " + h.Name(), nil
		}
		cpu += u.CPU
	}
	return cpu, "", nil
}

// onlyOwnTrials reports whether concurrent trials of the run, and neither other programs nor the
// hypervisor, competed for CPUs.
func (m measurement) onlyOwnTrials() bool {
	use, known := m.otherUse.Figure()
	return known && m.otherLabs > 0 && use.Cores < verdict.ForeignShare*use.Of && m.mostStolen().Of < verdict.ForeignShare
}

// otherUse returns the CPU use of foreign processes between two readings. It needs shortestSample, because
// CPU counters have a resolution of 10 ms.
func otherUse(before, after cpuReading) verdict.Piece[verdict.Use] {
	took := after.at.Sub(before.at)
	for _, a := range []cpuReading{before, after} {
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
			return verdict.Unknown[verdict.Use]("the lab of another trial was removed during the measurement")
		}
		used -= now - was
	}
	of := float64(after.cores)
	return verdict.Present(verdict.Use{Cores: min(of, max(0, used.Seconds()/took.Seconds())), Of: of})
}
