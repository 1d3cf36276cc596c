package linktest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/test/testkit"
)

func (s *suite) latency(t *testing.T) {
	tests := []struct {
		name   string
		ab, ba time.Duration
	}{
		{"none", 0, 0},
		{"symmetric", 20 * time.Millisecond, 20 * time.Millisecond},
		{"asymmetric", 5 * time.Millisecond, 60 * time.Millisecond},
		{"one way", 40 * time.Millisecond, 0},
		{"long", 300 * time.Millisecond, 250 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := s.wire(t, link.Quality{Latency: tt.ab}, link.Quality{Latency: tt.ba})
			train := probe.Train{Packets: 20, Bytes: 200, Every: 2 * time.Millisecond, Quiet: time.Second}
			oneWay := func(from, to *end) func() []time.Duration {
				return func() []time.Duration {
					arrivals := w.sendTo(from, to, train)
					checkComplete(t, arrivals, train.Packets)
					return delays(arrivals)
				}
			}
			s.checkDelay(t, "a to b", tt.ab, oneWay(w.near, w.far))
			s.checkDelay(t, "b to a", tt.ba, oneWay(w.far, w.near))
			s.checkDelay(t, "round trip", tt.ab+tt.ba, func() []time.Duration {
				return w.roundTrips([]probe.Pair{{From: w.near, To: w.far}})[0]
			})
		})
	}
}

// jitter tests each distribution at the same time, with packets far enough apart that few wait for another one.
func (s *suite) jitter(t *testing.T) {
	const mean, jitter = 60 * time.Millisecond, 10 * time.Millisecond
	dists := []link.Distribution{"", link.Uniform, link.Normal, link.Pareto, link.ParetoNormal}
	train := probe.Train{Packets: 150, Bytes: 200, Every: 2 * jitter, Quiet: time.Second}
	b := s.bench(t)
	arrivals := make([][]probe.Arrival, len(dists))
	var group errgroup.Group
	for i, d := range dists {
		w := b.wire(i, link.Quality{Latency: mean, Jitter: jitter, Distribution: d}, perfect)
		group.Go(func() (err error) {
			arrivals[i], err = probe.SendTrain(t.Context(), w.near, w.far, train)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, d := range dists {
		checkComplete(t, arrivals[i], train.Packets)
		if len(arrivals[i]) == 0 {
			continue
		}
		var ms []float64
		for _, delay := range delays(arrivals[i]) {
			ms = append(ms, delay.Seconds()*1000)
		}
		slices.Sort(ms)
		middle, spread := ms[len(ms)/2], ms[len(ms)*9/10]-ms[len(ms)/10]
		if math.Abs(middle-60) > 5+s.Slack.Seconds()*1000 { // the pareto distributions lean to the left
			t.Errorf("%q jitter: the median delay is %.1f ms, want 60", d, middle)
		}
		// The middle 80 % of a uniform distribution of half-width 10 ms span 16 ms, of a normal one with that deviation
		// 25.6 ms, of the pareto one 15 ms.
		if spread < 8 {
			t.Errorf("%q jitter: 80 %% of the packets lie within %.1f ms, want them spread wider", d, spread)
		}
		// One packet in fourteen is more than a deviation late, except with a uniform distribution.
		if d != link.Uniform && ms[len(ms)-1] < 70 {
			t.Errorf("%q jitter: no packet took longer than %.1f ms, want some beyond 70", d, ms[len(ms)-1])
		}
		if ms[0] >= 60 {
			t.Errorf("%q jitter: no packet is faster than the latency, the first at %.1f ms", d, ms[0])
		}
	}
	t.Run("never reorders", func(t *testing.T) {
		w := s.wire(t, link.Quality{Latency: 20 * time.Millisecond, Jitter: 10 * time.Millisecond}, perfect)
		checkComplete(t, w.send(s.flood(1000)), 1000)
	})
	t.Run("down to no delay", func(t *testing.T) {
		w := s.wire(t, link.Quality{Latency: 5 * time.Millisecond, Jitter: 5 * time.Millisecond, Distribution: link.Uniform}, perfect)
		checkComplete(t, w.send(s.flood(200)), 200)
	})
}

func (s *suite) reorder(t *testing.T) {
	const p = 0.1
	latency := s.pace * s.pace * 60 * time.Millisecond // more than the machine delays any packet
	w := s.wire(t, link.Quality{Latency: latency, Reorder: p}, perfect)
	train := s.flood(2000)
	arrivals := w.send(train)
	var ahead int
	var late []probe.Arrival
	for _, a := range arrivals {
		if a.Delay() < latency-earlyTolerance {
			ahead++
		} else {
			late = append(late, a)
		}
	}
	if len(arrivals) != train.Packets {
		t.Errorf("%d packets of %d arrived", len(arrivals), train.Packets)
	}
	checkBinomial(t, "packets sent at once", ahead, train.Packets, p)
	checkOrder(t, late)
}

// setInFlight changes the quality repeatedly during a train, and checks the delays around one change.
func (s *suite) setInFlight(t *testing.T) {
	const room = 10 << 20 // for all packets, with any bound
	qualities := []link.Quality{
		{Latency: 5 * time.Millisecond},
		{Latency: 50 * time.Millisecond, Bandwidth: 50_000_000, Queue: room},
		{Latency: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Bandwidth: 1_000_000_000, Queue: room},
		{},
	}
	t.Run("nothing lost or reordered", func(t *testing.T) {
		w := s.wire(t, qualities[0], perfect)
		train := s.flood(4000)
		done := make(chan struct{})
		var group errgroup.Group
		group.Go(func() error {
			for i := 0; ; i++ {
				select {
				case <-done:
					return nil
				case <-time.After(7 * time.Millisecond):
				}
				if err := w.change(&qualities[i%len(qualities)], nil); err != nil {
					return err
				}
			}
		})
		arrivals := w.send(train)
		close(done)
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		checkComplete(t, arrivals, train.Packets)
	})
	t.Run("packets keep their time", func(t *testing.T) {
		const before, after = 300 * time.Millisecond, 20 * time.Millisecond
		w := s.wire(t, link.Quality{Latency: before}, perfect)
		train := probe.Train{Packets: 300, Bytes: 200, Every: 5 * time.Millisecond, Quiet: time.Second}
		var old, fresh []time.Duration
		// A stopped machine may have sent no packet before or after the change.
		for range maxAttempts {
			w.set(&link.Quality{Latency: before}, nil)
			var changed time.Time
			group := errgroup.Group{}
			group.Go(func() error {
				time.Sleep(100 * time.Millisecond) // packets are in flight
				changed = time.Now()
				return w.change(&link.Quality{Latency: after}, nil)
			})
			arrivals := w.send(train)
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			checkComplete(t, arrivals, train.Packets)
			for _, a := range arrivals {
				sent := time.Unix(0, a.Sent)
				switch {
				case sent.Before(changed):
					old = append(old, a.Delay())
				case sent.After(changed.Add(before + s.Slack)): // the old queue is empty
					fresh = append(fresh, a.Delay())
				}
			}
			if len(old) > 0 && len(fresh) > 0 {
				break
			}
		}
		s.checkDelay(t, "sent before the change", before, func() []time.Duration { return old })
		s.checkDelay(t, "sent after it", after, func() []time.Duration { return fresh })
	})
}

// jitterRates tests links with the same jitter at different packet rates, all at the same time.
func (s *suite) jitterRates(t *testing.T) {
	const mean, jitter = 50.0, 5.0 // ms
	const lasting = 4 * time.Second
	// Permitted errors of median and deviation in ms. Delays may be correlated for 16 times the jitter, so 4 s contain
	// at least 50 independent ones: the median deviates by 0.9 ms, the deviation by 0.5 ms.
	medianOff, deviationOff := 3*float64(s.pace), 1.8*float64(s.pace)
	rates := []int{20, 200, 2000} // at the first rate they are ten times the jitter apart
	packets := func(rate int) int {
		if n := rate * int(lasting/time.Second); s.JitterByPacket == "" || rate == rates[0] {
			return n
		}
		return 500 // only their order is checked
	}
	b := s.bench(t)
	wires := make([]*wire, len(rates))
	for i := range rates {
		q := link.Quality{Latency: mean * time.Millisecond, Jitter: jitter * time.Millisecond, Distribution: link.Normal}
		wires[i] = b.wire(i, q, perfect)
	}
	measure := func() (off float64, what string) {
		arrivals := make([][]probe.Arrival, len(rates))
		var group errgroup.Group
		for i, rate := range rates {
			group.Go(func() (err error) {
				train := probe.Train{Packets: packets(rate), Bytes: 200, Every: time.Second / time.Duration(rate), Quiet: s.pace * time.Second}
				arrivals[i], err = probe.SendTrain(t.Context(), wires[i].near, wires[i].far, train)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		for i, rate := range rates {
			checkComplete(t, arrivals[i], packets(rate))
			if len(arrivals[i]) == 0 || s.JitterByPacket != "" && i > 0 {
				continue
			}
			sorted := slices.Sorted(slices.Values(delays(arrivals[i])))
			at := func(share float64) float64 { return sorted[int(share*float64(len(sorted)))].Seconds() * 1000 }
			median, deviation := at(0.5), (at(0.9)-at(0.1))/2.563 // for a normal distribution
			off = max(off, math.Abs(median-mean)/medianOff, math.Abs(deviation-jitter)/deviationOff)
			what += fmt.Sprintf("%.1f ms, deviation %.1f, at %d packets/s; ", median, deviation, rate)
		}
		return off, what
	}
	var seen string
	limit := medianOff / mean
	found, tries := judgeTries(limit, func() (off, gone float64) {
		began := time.Now()
		held := measureAway(func() { off, seen = measure() })
		return off * limit, held.Seconds() / time.Since(began).Seconds()
	})
	switch found {
	case wrong:
		t.Errorf("the median delay is %swant %.0f and %.0f, and the machine does not explain it: %s", seen, mean, jitter, tries)
	case noisy:
		testkit.Lacks(t, testkit.Quiet, fmt.Errorf("the machine was never quiet for as long as jitter is measured: %s: %s", seen, tries))
	}
}
