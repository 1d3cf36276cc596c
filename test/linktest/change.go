package linktest

import (
	"context"
	"errors"
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

// many creates, changes and measures twenty links, with one call each.
func (s *suite) many(t *testing.T) {
	const n = 20
	b := s.bench(t)
	var specs []link.Spec
	latency := func(i int) time.Duration { return time.Duration(1+i) * time.Millisecond }
	for i := range n {
		specs = append(specs, b.spec(i, link.Quality{Latency: latency(i)}, perfect))
	}
	b.create(specs...)
	var pairs []probe.Pair
	for i := range n {
		w := b.addressLink(i)
		pairs = append(pairs, probe.Pair{From: w.near, To: w.far})
	}
	check := func(what string, want func(i int) time.Duration) {
		t.Helper()
		rtts := b.roundTrips(pairs)
		for i := range pairs {
			s.checkDelay(t, what, want(i), func() []time.Duration {
				if rtts[i] == nil { // not the first attempt
					return b.roundTrips(pairs[i : i+1])[0]
				}
				first := rtts[i]
				rtts[i] = nil
				return first
			})
		}
	}
	check("as created", latency)

	var changes []link.Change
	later := link.Quality{Latency: 50 * time.Millisecond}
	for _, spec := range specs {
		changes = append(changes, link.Change{ID: spec.ID, AB: &later, BA: &later})
	}
	if err := b.engine.Set(t.Context(), changes); err != nil {
		t.Fatalf("Set: %v", err)
	}
	check("as set", func(int) time.Duration { return 100 * time.Millisecond })

	if got, err := b.engine.Stats(t.Context(), "link-3", "link-11"); err != nil || len(got) != 2 ||
		got[0].ID != "link-3" || got[1].ID != "link-11" {
		t.Errorf("Stats of two links = %+v, %v; want those two, in that order", got, err)
	}
}

// setAllOrNone makes the second change of a Set fail.
func (s *suite) setAllOrNone(t *testing.T) {
	w := s.wire(t, perfect, perfect)
	slow, wrong := link.Quality{Latency: 500 * time.Millisecond}, link.Quality{Loss: -1}
	tests := []struct {
		name string
		bad  link.Change
		want error
	}{
		{"unknown link", link.Change{ID: "never was", AB: &slow}, link.ErrUnknown},
		{"impossible quality", link.Change{ID: w.id, BA: &wrong}, link.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := w.engine.Set(t.Context(), []link.Change{{ID: w.id, AB: &slow}, tt.bad})
			if !errors.Is(err, tt.want) {
				t.Errorf("Set = %v, want %v", err, tt.want)
			}
			s.checkDelay(t, "after the failed change", 0, func() []time.Duration {
				return delays(w.send(s.flood(20)))
			})
		})
	}
}
