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
	"skerry/internal/evidence/steal"
	"skerry/internal/evidence/verdict"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/record"
)

// counterSnapshot is what the links and the machines have counted so far.
type counterSnapshot struct {
	links    []link.Stats
	machines []machineCounters
	cpu      cpuReading
}

// machineCounters is what a machine has counted so far.
type machineCounters struct {
	machine.Member
	at    time.Time
	used  sample.Machine
	late  link.Lateness // since the last reset
	clock machine.Clock // the zero value on the machine of this process
}

// readCounters reads all counters; reset begins a new count of lateness.
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
	c.used, errs[1] = sample.ReadMachine(ctx, m.Files())
	c.at = time.Now()
	if t, is := m.Part.(machine.Timed); is {
		c.clock, errs[2] = t.Clock(ctx)
	}
	return c, errors.Join(errs[:]...)
}

// machineSpan is what a machine did from one count to another.
type machineSpan struct {
	machine.Member
	use   verdict.Use   // cores, on average
	steal verdict.Share // of its CPU time
	late  link.Lateness
	clock machine.Clock // at the begin
	moved time.Duration // the clock, either way
}

// machineSpans are what machines did between two snapshots.
func machineSpans(before, after counterSnapshot) []machineSpan {
	all := make([]machineSpan, len(after.machines))
	for i, a := range after.machines {
		all[i] = newMachineSpan(before.machines[i], a)
	}
	return all
}

// newMachineSpan is of no use of processors where it took no time. The counters go by hundredths of a second,
// by which use may seem more than there is.
func newMachineSpan(b, a machineCounters) machineSpan {
	s := machineSpan{Member: a.Member, late: a.late, clock: b.clock, moved: (a.clock.Offset - b.clock.Offset).Abs()}
	s.use, s.steal = verdict.Use{Of: float64(a.used.Cores), Machine: a.Name}, verdict.Share{Machine: a.Name}
	if took := a.at.Sub(b.at).Seconds(); took > 0 && s.use.Of > 0 {
		s.use.Cores = min(s.use.Of, (a.used.Busy-b.used.Busy).Seconds()/took)
		s.steal.Of = min(1, (a.used.Steal-b.used.Steal).Seconds()/took/s.use.Of)
	}
	return s
}

// runSampler records what nodes, emulator and machine use, each second from zero on.
func (w *watch) runSampler(zero time.Time) error {
	l := w.env.lab
	s := &sample.Sampler{Hosts: l.Hosts(), Traffic: w.nodeTraffic}
	for _, m := range l.Machines() {
		f := m.Facts()
		s.Machines = append(s.Machines, sample.Machinery{Files: m.Files(), Emulator: f.Emulator, Tunneller: f.Tunneller})
	}
	if w.governor != nil {
		s.Governed = w.governor.State
	}
	return s.Run(w.ctx, zero, func(rows []record.NodeSecond) error {
		w.report.live.AddNodes(rows)
		w.addSamples(rows)
		if err := w.report.writer.NodeSeconds(rows...); err != nil {
			return recordError{err}
		}
		return nil
	})
}

// nodeTraffic sums the links' bytes by node, and records what the links did in the second that ends.
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

// subtractStats is what was counted between two readings.
func subtractStats(before, after []link.Stats) []link.Stats {
	was := byID(before)
	out := make([]link.Stats, len(after))
	for i, s := range after {
		b := was[s.ID]
		out[i] = link.Stats{ID: s.ID, AB: subtractCounters(s.AB, b.AB), BA: subtractCounters(s.BA, b.BA)}
	}
	return out
}

func subtractCounters(a, b link.Counters) link.Counters {
	return link.Counters{
		Bytes: a.Bytes - b.Bytes, Packets: a.Packets - b.Packets,
		DroppedQueue: a.DroppedQueue - b.DroppedQueue, DroppedLoss: a.DroppedLoss - b.DroppedLoss,
		Account: a.Account.Sub(b.Account),
	}
}

// labs are those of a run that are up: what they use is not the work of others, whichever trial they are of.
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

// labsWith are a trial's lab, the first, and those of trials that run at the same time.
func (t *PhaseScheduler) labsWith(l *lab.Lab) []*lab.Lab {
	if t == nil {
		return []*lab.Lab{l}
	}
	t.labs.mu.Lock()
	defer t.labs.mu.Unlock()
	return append([]*lab.Lab{l}, slices.DeleteFunc(slices.Clone(t.labs.all), func(x *lab.Lab) bool { return x == l })...)
}

// cpuReading is the processor time of the machine's processes, and the run's part of it.
type cpuReading struct {
	at        time.Time
	processes time.Duration
	cores     int
	self      time.Duration // this process
	labs      map[*lab.Lab]time.Duration
	unknown   string // why the run's part is not known
}

// readCPUUse reads that of this machine. On machines that are reached through agents it is not known: an agent is
// not told apart from other programs.
func readCPUUse(ctx context.Context, all []*lab.Lab) (a cpuReading, err error) {
	on := files.Local{}
	a.labs = map[*lab.Lab]time.Duration{}
	for i, l := range all {
		a.labs[l], a.unknown, err = labCPU(ctx, l)
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

// labCPU is the processor time that a lab's nodes and helpers have used, or why it is not known.
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

// onlyOwnTrials tells whether trials of the run are what took processors from each other: others ran at the same time,
// and neither other programs nor the hypervisor used as much as counts.
func (m measurement) onlyOwnTrials() bool {
	use, known := m.otherUse.Figure()
	return known && m.otherLabs > 0 && use.Cores < steal.Foreign*use.Of && m.mostStolen().Of < steal.Foreign
}

// otherUse is what processes used between two readings that are none of the run's. In less time than shortestSample
// the machine's counters, which go by hundredths of a second, tell too little.
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
			return verdict.Unknown[verdict.Use]("the lab of another trial went down meanwhile")
		}
		used -= now - was
	}
	of := float64(after.cores)
	return verdict.Of(verdict.Use{Cores: min(of, max(0, used.Seconds()/took.Seconds())), Of: of})
}
