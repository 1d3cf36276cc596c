package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const trueMean = 1000

// ar1 returns a first-order autoregressive series around trueMean: neighbours have the correlation phi, single values
// the deviation sd.
func ar1(r *rand.Rand, n int, phi, sd float64) []float64 {
	xs := make([]float64, n)
	e := sd * r.NormFloat64()
	for i := range xs {
		xs[i] = trueMean + e
		e = phi*e + sd*math.Sqrt(1-phi*phi)*r.NormFloat64()
	}
	return xs
}

func estimate(xs []float64) BatchInterval {
	b := NewBatchMeans()
	for _, x := range xs {
		b.Add(x)
	}
	return b.Interval()
}

// The bounds are three standard errors (of 2,000 series, below 1 % each) around the values of the table in
// batchmeans.go.
func TestCoverage(t *testing.T) {
	const series = 2000
	for _, c := range []struct {
		phi         float64
		n           int
		least, most float64
	}{
		{0, 20, 0.945, 0.98}, {0, 40, 0.945, 0.98}, {0, 160, 0.945, 0.98},
		{0.3, 40, 0.92, 0.97}, {0.3, 160, 0.945, 0.98},
		{0.6, 40, 0.89, 0.95}, {0.6, 160, 0.93, 0.98},
		{0.8, 40, 0.86, 0.93}, {0.8, 160, 0.91, 0.97},
	} {
		t.Run(fmt.Sprintf("phi=%g/n=%d", c.phi, c.n), func(t *testing.T) {
			r := rand.New(rand.NewPCG(42, uint64(c.n)))
			covered := 0
			for range series {
				if i := estimate(ar1(r, c.n, c.phi, 100)); i.OK && math.Abs(i.Mean-trueMean) <= i.HalfWidth {
					covered++
				}
			}
			if got := float64(covered) / series; got < c.least || got > c.most {
				t.Errorf("covers the mean in %.1f %% of series, want %.1f to %.1f", 100*got, 100*c.least, 100*c.most)
			}
		})
	}
}

// Stopping early by looking at the data reduces the coverage; the rule must bound that effect.
func TestCoverageWhenStoppedEarly(t *testing.T) {
	const series, longest = 300, 400
	for _, c := range []struct{ phi, least float64 }{{0, 0.92}, {0.3, 0.89}, {0.6, 0.82}} {
		t.Run(fmt.Sprintf("phi=%g", c.phi), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			covered, stopped := 0, 0
			for range series {
				b := NewBatchMeans()
				for _, x := range ar1(r, longest, c.phi, 100) {
					b.Add(x)
					if b.Reached(0.05) {
						stopped++
						if i := b.Interval(); math.Abs(i.Mean-trueMean) <= i.HalfWidth {
							covered++
						}
						break
					}
				}
			}
			if got := float64(covered) / float64(stopped); stopped < series*9/10 || got < c.least {
				t.Errorf("%d of %d stopped, covering in %.1f %%, want at least %.0f", stopped, series, 100*got, 100*c.least)
			}
		})
	}
}

func TestTooShortForAnInterval(t *testing.T) {
	for n := range 20 {
		i := estimate(ar1(rand.New(rand.NewPCG(1, 1)), n, 0, 100))
		if i.OK || i.HalfWidth != 0 || i.Batches != 0 {
			t.Errorf("%d seconds: %+v, want no interval", n, i)
		}
	}
	if i := estimate([]float64{1, 3}); i.Mean != 2 {
		t.Errorf("mean of 1 and 3 is %g", i.Mean)
	}
}

func TestBatchesGrow(t *testing.T) {
	for n, want := range map[int][2]int{20: {10, 2}, 29: {14, 2}, 44: {22, 2}, 45: {15, 3}, 300: {15, 20}, 3600: {15, 240}} {
		i := estimate(make([]float64, n))
		if diff := cmp.Diff(want, [2]int{i.Batches, i.BatchSize}); diff != "" {
			t.Errorf("%d seconds: batches and their size (-want +got):\n%s", n, diff)
		}
	}
}

// A short steady start is not sufficient.
func TestLuckyStartDoesNotStop(t *testing.T) {
	b := NewBatchMeans()
	for n := range 23 {
		b.Add(trueMean)
		if b.Reached(0.05) {
			t.Fatalf("stopped after %d seconds", n+1)
		}
	}
	b.Add(trueMean)
	if !b.Reached(0.05) {
		t.Error("24 equal seconds do not stop")
	}
}

func TestOutlierRestartsCount(t *testing.T) {
	b := NewBatchMeans()
	add := func(x float64, times int) (reached bool) {
		for range times {
			b.Add(x)
			reached = b.Reached(0.05)
		}
		return reached
	}
	if add(trueMean, 23) || add(10*trueMean, 1) || add(trueMean, 3) {
		t.Error("stopped with an outlier of ten times the mean")
	}
}

func TestReachedIsIdempotent(t *testing.T) {
	b := NewBatchMeans()
	for range 20 {
		b.Add(trueMean)
	}
	for range 100 {
		if b.Reached(0.05) {
			t.Fatal("stopped because of frequent checks")
		}
	}
}

// A cluster that is down does not have a throughput of 0.
func TestZeroThroughputNeverStops(t *testing.T) {
	b := NewBatchMeans()
	for range 200 {
		b.Add(0)
		if b.Reached(0.05) {
			t.Fatal("stopped")
		}
	}
}

func TestNaNIsIgnored(t *testing.T) {
	b := NewBatchMeans()
	for i := range 40 {
		b.Add(float64(i % 3))
		b.Add(math.NaN())
		b.Add(math.Inf(1))
	}
	if i := b.Interval(); !i.OK || math.IsNaN(i.Mean) || math.IsNaN(i.HalfWidth) || math.IsInf(i.HalfWidth, 0) {
		t.Errorf("%+v", i)
	}
}
