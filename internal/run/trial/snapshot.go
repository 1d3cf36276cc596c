package trial

import (
	"context"
	"errors"
	"time"

	"skerry/internal/evidence/sample"
	"skerry/internal/link"
	"skerry/internal/record"
)

// snapshot is what the links and the machine have counted so far.
type snapshot struct {
	at      time.Time // the machine's
	links   []link.Stats
	late    link.Lateness // since the last reset
	machine sample.Machine
}

// snapshot reads all counters; reset begins a new count of lateness.
func (w *watch) snapshot(reset bool) (snapshot, error) {
	links, errLinks := w.ground.lab.Stats(w.ctx)
	late, errLate := w.ground.lab.Lateness(w.ctx, reset)
	machine, errMachine := sample.ReadMachine(w.ctx, w.ground.lab.Files())
	return snapshot{time.Now(), links, late, machine}, errors.Join(errLinks, errLate, errMachine)
}

// sample records what nodes, emulator and machine use, each second from zero on.
func (w *watch) sample(zero time.Time) error {
	l := w.ground.lab
	s := &sample.Sampler{Hosts: l.Hosts(), Machine: l.Files(), EmulatorPID: l.EmulatorPID(), TunnelPID: l.TunnelPID(), Traffic: w.nodeTraffic}
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

// nodeTraffic sums the links' bytes by node.
func (w *watch) nodeTraffic(ctx context.Context) (sample.Traffic, error) {
	t := sample.Traffic{Tx: map[string]uint64{}, Rx: map[string]uint64{}}
	links, err := w.ground.lab.Stats(ctx)
	if err != nil {
		return t, err
	}
	counted := byID(links)
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
	}
}
