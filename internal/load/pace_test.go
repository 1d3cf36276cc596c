package load

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"skerry/internal/load/ycsb"
)

func TestConstantArrivals(t *testing.T) {
	p := newPace(Spec{Target: 4000, Arrival: Constant}, 0)
	for want := range int64(10) {
		if got := p.next(); got != (slot{want, time.Duration(want) * 250 * time.Microsecond}) {
			t.Errorf("operation %d is due at %v", got.n, got.due)
		}
	}
}

// Gaps of a Poisson process are exponential: mean and standard deviation are equal, and a share of
// 1/e exceeds the mean.
func TestPoissonArrivals(t *testing.T) {
	const n, rate = 100_000, 1000.0
	gaps := func(seed uint64) []float64 {
		p := newPace(Spec{Target: rate, Arrival: Poisson}, seed)
		out := make([]float64, n)
		last := time.Duration(0)
		for i := range out {
			due := p.next().due
			out[i] = (due - last).Seconds() * rate
			last = due
		}
		return out
	}
	var sum, squares, longer float64
	a, again, other := gaps(1), gaps(1), gaps(2)
	for i, g := range a {
		if g < 0 {
			t.Fatalf("gap %d is negative", i)
		}
		if g != again[i] {
			t.Fatalf("gap %d differs with the same seed", i)
		}
		sum += g
		squares += g * g
		if g > 1 {
			longer++
		}
	}
	mean := sum / n
	if sd := math.Sqrt(squares/n - mean*mean); math.Abs(mean-1) > 0.02 || math.Abs(sd-1) > 0.02 {
		t.Errorf("gaps of mean %.3f and standard deviation %.3f, want 1 and 1", mean, sd)
	}
	if share := longer / n; math.Abs(share-1/math.E) > 0.01 {
		t.Errorf("%.3f of the gaps are longer than the mean, want 1/e", share)
	}
	if a[0] == other[0] {
		t.Error("another seed gives the same arrivals")
	}
}

// stall delays the first operation.
func stall(m *memory, d time.Duration) {
	m.before = func(_ context.Context, n int, _ ycsb.Kind, _ string) error {
		if n == 0 {
			time.Sleep(d)
		}
		return nil
	}
}

func TestClosedLoopAfterAStall(t *testing.T) {
	t.Parallel()
	const length = 500 * time.Millisecond
	w := workload(t, "c", ycsb.Properties{"operationcount": "600"})
	t.Run("catchup", func(t *testing.T) {
		m := loaded(t, w)
		stall(m, length)
		r, _ := drive(t, m, Spec{Workload: w, Target: 1000})
		if r.Spec.AfterStall != Catchup || r.OK != 600 || r.Dropped != 0 {
			t.Errorf("%s: %+v", r.Spec.AfterStall, r.Counts)
		}
		// The operations that were due meanwhile waited: about 500 of 600. The service time does
		// not show this.
		if p := r.Latency.Response.Quantile(0.5); p < length/5 {
			t.Errorf("the median response time is %v", p)
		}
		if p := r.Latency.Service.Quantile(0.5); p > length/5 {
			t.Errorf("the median service time is %v", p)
		}
	})
	t.Run("skip", func(t *testing.T) {
		m := loaded(t, w)
		stall(m, length)
		r, _ := drive(t, m, Spec{Workload: w, Target: 1000, AfterStall: Skip})
		if r.Spec.AfterStall != Skip || r.OK+r.Dropped != 600 || r.OK != int64(m.calls) {
			t.Errorf("%s: %+v, %d calls", r.Spec.AfterStall, r.Counts, m.calls)
		}
		if r.Dropped < 300 || r.Operations["READ"].Dropped != r.Dropped {
			t.Errorf("%d dropped, want those due more than %v before the end of the stall", r.Dropped, stallAfter)
		}
	})
}

// A stall beyond the end leaves operations that were due and never sent.
func TestStallBeyondEndIsCounted(t *testing.T) {
	t.Parallel()
	w := workload(t, "c", nil)
	m := loaded(t, w)
	stall(m, 600*time.Millisecond)
	r, _ := drive(t, m, Spec{Workload: w, Target: 1000, Duration: 300 * time.Millisecond})
	if want := (Counts{OK: 1, Dropped: 299}); r.Counts != want || r.Stopped != stoppedDuration || r.Duration != 300*time.Millisecond {
		t.Errorf("%+v in %v, want %+v", r.Counts, r.Duration, want)
	}
	if r.Drain < 290*time.Millisecond {
		t.Errorf("drained in %v", r.Drain)
	}
}

func TestOpenLoopIsBounded(t *testing.T) {
	t.Parallel()
	for _, arrival := range []Arrival{Constant, Poisson} {
		t.Run(string(arrival), func(t *testing.T) {
			w := workload(t, "a", nil)
			m := loaded(t, w)
			var now, most atomic.Int64
			m.before = func(context.Context, int, ycsb.Kind, string) error {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(20 * time.Millisecond) // serves 200 per second
				now.Add(-1)
				return nil
			}
			const arrivals = 500
			s := Spec{Workload: w, Arrival: arrival, Target: 1000, MaxInFlight: 4, Operations: arrivals, Seed: 3}
			r, _ := drive(t, m, s)
			if r.Ended()+r.Dropped != arrivals || int64(m.calls) != r.OK {
				t.Errorf("%+v of %d arrivals, %d calls", r.Counts, arrivals, m.calls)
			}
			if r.Dropped < arrivals/2 || most.Load() > 4 {
				t.Errorf("%d dropped, up to %d in flight", r.Dropped, most.Load())
			}
			// Without a limit on waiting, all operations are sent late. The maxima cannot be
			// compared, since a stall of the machine affects both.
			s.AfterStall, s.Operations = Catchup, 100
			r, _ = drive(t, m, s)
			response, service := r.Latency.Response.Quantile(0.5), r.Latency.Service.Quantile(0.5)
			if r.OK != 100 || response < 2*service {
				t.Errorf("catching up: %+v, median response %v, service %v", r.Counts, response, service)
			}
		})
	}
}

// A late operation of a free worker is sent, and its lateness counts as the driver's.
func TestLatenessFromLackOfCPU(t *testing.T) {
	t.Parallel()
	d := &driver{base: time.Now().Add(-time.Second)}
	w := &worker{d: d, shard: newShard()}
	for _, c := range []struct {
		free time.Duration
		want sendDecision
	}{{0, decideSend}, {500 * time.Millisecond, decideSend}, {600 * time.Millisecond, decideDrop}} {
		if got := w.await(&segment{skip: true}, c.free, 500*time.Millisecond); got != c.want {
			t.Errorf("free since %v: %v, want %v", c.free, got, c.want)
		}
	}
	if held := w.shard.takeRecent(nil); len(held) != 2 || !held[0].wakeup {
		t.Errorf("the driver was late: %+v, want twice", held)
	}
}

func TestOpenLoopDropsNothingBelowLimit(t *testing.T) {
	t.Parallel()
	w := workload(t, "a", nil)
	m := loaded(t, w)
	const arrivals = 100 // all can be in flight, even if a busy machine sends them late
	r, _ := drive(t, m, Spec{Workload: w, Arrival: Poisson, Target: 100, MaxInFlight: arrivals, Operations: arrivals, Seed: 8})
	if r.Dropped != 0 || r.OK != arrivals {
		t.Errorf("%+v, want %d", r.Counts, arrivals)
	}
}

func TestWaker(t *testing.T) {
	w, err := newWaker()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, d := range []time.Duration{-1, 0, time.Nanosecond, 3 * time.Millisecond} {
		from := time.Now()
		if err := w.sleep(d); err != nil || time.Since(from) < d {
			t.Errorf("slept %v of %v: %v", time.Since(from), d, err)
		}
	}
	woken := make(chan error)
	go func() { woken <- w.sleep(time.Hour) }()
	if err := w.interrupt(); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; err == nil {
		t.Error("an interrupted sleep returned no error")
	}
}

// BenchmarkLateness reports the lateness of the two ways to sleep, in microseconds.
func BenchmarkLateness(b *testing.B) {
	w, err := newWaker()
	if err != nil {
		b.Fatal(err)
	}
	defer w.close()
	for name, sleep := range map[string]func(time.Duration){
		"timerfd": func(d time.Duration) { _ = w.sleep(d) },
		"go":      time.Sleep,
	} {
		b.Run(name, func(b *testing.B) {
			var h Histogram
			for i := range b.N {
				d := time.Duration(300+i%700) * time.Microsecond
				from := time.Now()
				sleep(d)
				h.Record(time.Since(from) - d)
			}
			b.ReportMetric(float64(h.Quantile(0.5))/1e3, "p50-us")
			b.ReportMetric(float64(h.Quantile(0.99))/1e3, "p99-us")
		})
	}
}
