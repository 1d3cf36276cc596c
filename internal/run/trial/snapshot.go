package trial

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/evidence/sample"
	"skerry/internal/evidence/verdict"
	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/record"
)

// snapshot is what the links and the machines have counted so far.
type snapshot struct {
	links    []link.Stats
	machines []counted
	cpu      cpuUse
}

// counted is what a machine has counted so far.
type counted struct {
	machine.Member
	at    time.Time
	used  sample.Machine
	late  link.Lateness // since the last reset
	clock machine.Clock // the zero value on the machine of this process
}

// snapshot reads all counters; reset begins a new count of lateness.
func (w *watch) snapshot(reset bool) (s snapshot, err error) {
	s.links, err = w.ground.lab.Stats(w.ctx)
	members := w.ground.lab.Machines()
	s.machines = make([]counted, len(members))
	var all errgroup.Group
	for i, m := range members {
		all.Go(func() (err error) {
			s.machines[i], err = count(w.ctx, m, reset)
			return err
		})
	}
	all.Go(func() (err error) {
		s.cpu, err = readCPUUse(w.ctx, w.ground.turns.with(w.ground.lab))
		return err
	})
	return s, errors.Join(err, all.Wait())
}

func count(ctx context.Context, m machine.Member, reset bool) (counted, error) {
	c := counted{Member: m}
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

// spans are what machines did between two snapshots.
func spans(before, after snapshot) []machineSpan {
	all := make([]machineSpan, len(after.machines))
	for i, a := range after.machines {
		all[i] = span(before.machines[i], a)
	}
	return all
}

// span is of no use of processors where it took no time. The counters go by hundredths of a second,
// by which use may seem more than there is.
func span(b, a counted) machineSpan {
	s := machineSpan{Member: a.Member, late: a.late, clock: b.clock, moved: (a.clock.Offset - b.clock.Offset).Abs()}
	s.use, s.steal = verdict.Use{Of: float64(a.used.Cores), Machine: a.Name}, verdict.Share{Machine: a.Name}
	if took := a.at.Sub(b.at).Seconds(); took > 0 && s.use.Of > 0 {
		s.use.Cores = min(s.use.Of, (a.used.Busy-b.used.Busy).Seconds()/took)
		s.steal.Of = min(1, (a.used.Steal-b.used.Steal).Seconds()/took/s.use.Of)
	}
	return s
}

// sample records what nodes, emulator and machine use, each second from zero on.
func (w *watch) sample(zero time.Time) error {
	l := w.ground.lab
	s := &sample.Sampler{Hosts: l.Hosts(), Traffic: w.nodeTraffic}
	for _, m := range l.Machines() {
		f := m.Facts()
		s.Machines = append(s.Machines, sample.Machinery{Files: m.Files(), Emulator: f.Emulator, Tunneller: f.Tunneller})
	}
	if w.governor != nil {
		s.Governed = w.governor.State
	}
	return s.Run(w.ctx, zero, func(rows []record.NodeSecond) error {
		w.tell.live.Nodes(rows)
		w.used(rows)
		if err := w.tell.writer.NodeSeconds(rows...); err != nil {
			return recordError{err}
		}
		return nil
	})
}

// nodeTraffic sums the links' bytes by node, and records what the links did in the second that ends.
func (w *watch) nodeTraffic(ctx context.Context) (sample.Traffic, error) {
	t := sample.Traffic{Tx: map[string]uint64{}, Rx: map[string]uint64{}}
	links, err := w.ground.lab.Stats(ctx)
	if err != nil {
		return t, err
	}
	at, counted := time.Now(), byID(links)
	if w.events != nil {
		w.events.carried.add(at, links)
	}
	if err := w.tell.writer.DirectionSeconds(w.ledger.add(at, counted, w.ground.lab.Links())...); err != nil {
		return t, recordError{err}
	}
	for _, l := range w.ground.lab.Links() {
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

// difference is what was counted between two readings.
func difference(before, after []link.Stats) []link.Stats {
	was := byID(before)
	out := make([]link.Stats, len(after))
	for i, s := range after {
		b := was[s.ID]
		out[i] = link.Stats{ID: s.ID, AB: minus(s.AB, b.AB), BA: minus(s.BA, b.BA)}
	}
	return out
}

func minus(a, b link.Counters) link.Counters {
	return link.Counters{
		Bytes: a.Bytes - b.Bytes, Packets: a.Packets - b.Packets,
		DroppedQueue: a.DroppedQueue - b.DroppedQueue, DroppedLoss: a.DroppedLoss - b.DroppedLoss,
		Account: a.Account.Sub(b.Account),
	}
}
