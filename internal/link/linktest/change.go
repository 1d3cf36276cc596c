package linktest

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/link"
	"skerry/internal/link/probe"
)

// rateChange changes the bandwidth while packets wait: waiting packets must leave at the new bandwidth.
//
//	bytes that left │      ╱ fast           │   ╭──── slow
//	                │ ____╱                 │  ╱
//	                │╱  slow                │ ╱ fast
//	                └─────┴────── t         └───┴──────── t
//	                   change                 change
func (s *suite) rateChange(t *testing.T) {
	const size, latency, room = 1000, 2 * time.Millisecond, 1 << 20
	fast := 10_000_000 / int64(s.pace)
	at := func(bps int64) link.Quality { return link.Quality{Latency: latency, Bandwidth: bps, Queue: room} }
	sending := func(packets int, bps int64) time.Duration {
		return time.Duration(float64(packets*size*8) / float64(bps) * float64(time.Second))
	}
	train := func(n int) probe.Train { return probe.Train{Packets: n, Bytes: size, Quiet: s.pace * time.Second} }

	t.Run("rises", func(t *testing.T) {
		slow := fast / 100
		w := s.wire(t, at(slow), perfect)
		for n := 1; ; n++ {
			before := at(slow)
			w.set(&before, nil)
			m := w.changeMidway(train(200), 3, at(fast))
			checkComplete(t, m.arrivals, 200)
			rest := m.after(m.done)
			if len(rest) == 0 {
				t.Fatal("no packet waited when the bandwidth was set")
			}
			took, want := rest[len(rest)-1].At-m.began.UnixNano(), sending(len(rest), fast)
			if took := time.Duration(took); took > latency+want*5/4+s.Slack {
				if n < maxAttempts && took < 10*want { // the machine may have been busy
					continue
				}
				t.Errorf("%d packets waited when the bandwidth rose from %d to %d bit/s, and took %v: want %v",
					len(rest), slow, fast, took, want)
			}
			return
		}
	})
	t.Run("falls", func(t *testing.T) {
		slow := fast / 5
		w := s.wire(t, at(fast), perfect)
		for n := 1; ; n++ {
			before := at(fast)
			w.set(&before, nil)
			m := w.changeMidway(train(400), 50, at(slow))
			checkComplete(t, m.arrivals, 400)
			rest := m.after(m.done.Add(latency)) // packets may have been in flight
			if len(rest) < 50 {
				if n < maxAttempts {
					continue
				}
				t.Fatalf("%d packets waited when the bandwidth was set, want 50", len(rest))
			}
			took := time.Duration(rest[len(rest)-1].At - m.began.UnixNano())
			// One packet may be on its way to the wire when the bandwidth changes.
			if least := sending(len(rest)-1, slow); took < least-earlyTolerance {
				t.Errorf("%d packets waited when the bandwidth fell from %d to %d bit/s, and took %v: want at least %v",
					len(rest), fast, slow, took, least)
			}
			if most := latency + sending(len(rest)+1, slow)*5/4 + s.Slack; took > most {
				if n < maxAttempts {
					continue
				}
				t.Errorf("%d packets waited when the bandwidth fell from %d to %d bit/s, and took %v: want at most %v",
					len(rest), fast, slow, took, most)
			}
			return
		}
	})
}

// midway is a train during which the quality of its direction was set.
type midway struct {
	arrivals    []probe.Arrival
	began, done time.Time // of Set
}

// after returns the packets that arrived after a moment.
func (m midway) after(moment time.Time) []probe.Arrival {
	for i, a := range m.arrivals {
		if a.At > moment.UnixNano() {
			return m.arrivals[i:]
		}
	}
	return nil
}

// changeMidway sends a train from the near end and sets its direction after a number of deliveries.
func (w *wire) changeMidway(train probe.Train, delivered uint64, next link.Quality) (m midway) {
	w.t.Helper()
	before := w.stats().AB.Packets
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var group errgroup.Group
	group.Go(func() error {
		for ctx.Err() == nil {
			stats, err := w.engine.Stats(ctx, w.id)
			if err != nil {
				return err
			}
			if stats[0].AB.Packets-before >= delivered {
				m.began = time.Now()
				err := w.change(&next, nil)
				m.done = time.Now()
				return err
			}
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	})
	arrivals := w.send(train)
	cancel()
	if err := group.Wait(); err != nil {
		w.t.Fatalf("setting the link under a train: %v", err)
	}
	m.arrivals = arrivals
	return m
}
