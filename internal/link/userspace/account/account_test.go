package account_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/userspace/account"
	"skerry/internal/link/userspace/packet"
	"skerry/internal/link/userspace/shaper"
)

// drive sends packets of 1000 bytes over a direction in virtual time, with gaps from a list, and changes its quality
// meanwhile. fault changes the times of a packet before they are checked.
func drive(t *testing.T, qualities []link.Quality, gaps []time.Duration, fault func(*account.Timing)) link.Account {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	s := shaper.New(shaper.Compile(qualities[0]), "a~b", "ab", 1)
	a := account.New(0, qualities[0])
	k := packet.NewPool(1 << 20).Get(1000 + packet.VnetHeader)
	k.Buffer()[packet.VnetHeader] = 0x45
	if !k.Parse(1000+packet.VnetHeader, 0) {
		t.Fatal("packet does not parse")
	}
	deliver := func(until int64) {
		for due, _, ok := s.NextDue(until); ok && due <= until; due, _, ok = s.NextDue(until) {
			n := s.Next(until)
			w := account.Timing{Arrived: n.Arrived, Departed: n.Departs, Due: n.Due, HandedOver: n.Due + r.Int64N(30_000), Bytes: n.Bytes}
			if fault != nil {
				fault(&w)
			}
			a.Deliver(w)
		}
	}
	var now int64
	for i, q := range qualities {
		if i > 0 {
			now++ // otherwise a packet sent now could have either quality
			s.Set(now, shaper.Compile(q))
			a.Set(now, q)
		}
		for range 300 {
			now += int64(gaps[r.IntN(len(gaps))])
			deliver(now)
			if s.Offer(now, 0, k, 0, false) == shaper.Send {
				a.Deliver(account.Timing{Arrived: now, Departed: now, Due: now, HandedOver: now, Bytes: 1000})
			}
		}
	}
	deliver(now + int64(time.Hour))
	var snapshot account.Snapshot
	a.Copy(&snapshot, 0, 0)
	return snapshot.Account()
}

var gaps = []time.Duration{0, time.Microsecond, 100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond}

// drift returns qualities that change at random, like those of moving sites.
func drift(jitter bool) (all []link.Quality) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		q := link.Quality{Latency: time.Duration(10+r.IntN(100)) * time.Millisecond, Queue: 20_000}
		if r.IntN(4) > 0 {
			q.Bandwidth = 100_000 + r.Int64N(20_000_000)
		}
		if jitter {
			q.Jitter = q.Latency / 5
			q.Distribution = []link.Distribution{link.Normal, link.Uniform, link.Pareto, link.ParetoNormal}[r.IntN(4)]
		}
		all = append(all, q)
	}
	return all
}

func breaches(a link.Account) uint64 {
	return a.Early.Packets + a.Late.Packets + a.Fast.Packets + a.Slow.Packets
}

func TestCorrectLinkBreaksNoLaw(t *testing.T) {
	for _, jitter := range []bool{false, true} {
		got := drive(t, drift(jitter), gaps, nil)
		if breaches(got) > 0 {
			t.Errorf("jitter %v: %d of %d packets: %+v", jitter, breaches(got), got.Packets, got)
		}
		if got.Changes != 199 || got.Confirmed != got.Changes {
			t.Errorf("jitter %v: change %d of %d was confirmed", jitter, got.Confirmed, got.Changes)
		}
	}
}

func TestAccountDetectsFaults(t *testing.T) {
	steady := []link.Quality{{Latency: 20 * time.Millisecond, Bandwidth: 5_000_000}}
	rising := []link.Quality{
		{Latency: 2 * time.Millisecond, Bandwidth: 100_000, Queue: 1 << 20},
		{Latency: 2 * time.Millisecond, Bandwidth: 10_000_000, Queue: 1 << 20},
	}
	falling := []link.Quality{rising[1], rising[0]}
	tests := []struct {
		name      string
		qualities []link.Quality
		fault     func(*account.Timing)
		found     func(link.Account) link.Breach
	}{
		{"no latency", steady, func(w *account.Timing) { w.Due, w.HandedOver = w.Departed, w.Departed },
			func(a link.Account) link.Breach { return a.Early }},
		{"twice the latency", steady, func(w *account.Timing) { w.Due += 20e6; w.HandedOver += 20e6 },
			func(a link.Account) link.Breach { return a.Late }},
		{"no limit", steady, func(w *account.Timing) { w.Departed = w.Arrived }, func(a link.Account) link.Breach { return a.Fast }},
		{"a late rise of the rate", rising, late(100_000), func(a link.Account) link.Breach { return a.Slow }},
		{"a late fall of the rate", falling, late(10_000_000), func(a link.Account) link.Breach { return a.Fast }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := drive(t, tt.qualities, []time.Duration{time.Millisecond}, tt.fault); tt.found(got).Packets < 30 {
				t.Errorf("the fault was not detected: %+v", got)
			}
		})
	}
}

// late is a wire that keeps its first rate.
func late(rate float64) func(*account.Timing) {
	free := int64(0)
	return func(w *account.Timing) {
		travel := w.Due - w.Departed
		free = max(free, w.Arrived) + int64(8000/rate*1e9)
		w.Departed = free
		w.Due, w.HandedOver = free+travel, free+travel
	}
}

// The sums of an account give the mean and the standard deviation of the jitter.
func TestSpreadMeasuresJitter(t *testing.T) {
	const jitter = 5 * time.Millisecond
	got := drive(t, slices.Repeat([]link.Quality{{Latency: 50 * time.Millisecond, Jitter: jitter}}, 300), []time.Duration{jitter * 8}, nil)
	n := float64(got.Packets)
	mean := got.Spread.Seconds() * 1e3 / n
	deviation := math.Sqrt(got.Squares/n) / 1e3
	if math.Abs(mean) > 0.1 || math.Abs(deviation-5) > 0.1 || math.Abs(math.Sqrt(got.SetSquares/n)-5000) > 1 {
		t.Errorf("mean %.3f ms, standard deviation %.3f ms, set %.3f us", mean, deviation, math.Sqrt(got.SetSquares/n))
	}
}

func BenchmarkDeliver(b *testing.B) {
	a := account.New(0, link.Quality{Latency: 20 * time.Millisecond, Bandwidth: 1e9})
	for i := range int64(b.N) {
		at := i * 20_000
		a.Deliver(account.Timing{Arrived: at, Departed: at + 8000, Due: at + 20_008_000, HandedOver: at + 20_010_000, Bytes: 1000})
	}
}
