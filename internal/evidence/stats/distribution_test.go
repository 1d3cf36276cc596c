package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

func TestStudentQuantile(t *testing.T) {
	for _, df := range []float64{1, 1.5, 2, 3, 4, 10, 29.3, 1000} {
		for _, p := range []float64{0.5, 0.6, 0.9, 0.975, 0.999} {
			want := distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(p)
			if got := StudentQuantile(p, df); math.Abs(got-want) > 1e-9*(1+want) {
				t.Errorf("quantile %g with %g degrees of freedom = %g, want %g", p, df, got, want)
			}
		}
	}
}

func TestDrawChiSquared(t *testing.T) {
	for _, df := range []float64{2.5, 3, 10, 40} {
		got, want := rand.New(rand.NewPCG(7, 1)), distuv.ChiSquared{K: df, Src: rand.New(rand.NewPCG(7, 1))}
		for range 1000 {
			if g, w := DrawChiSquared(df, got), want.Rand(); math.Abs(g-w) > 1e-9*w {
				t.Fatalf("draw with %g degrees of freedom = %g, want %g", df, g, w)
			}
		}
	}
}

func TestMeanDeviationAndQuantile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 10, 101, 1000} {
		x := make([]float64, n)
		for i := range x {
			x[i] = 1e6 + random.NormFloat64()
		}
		mean, deviation := MeanDeviation(x)
		wantMean, want := stat.PopMeanStdDev(x, nil)
		if math.Abs(mean-wantMean) > 1e-9*wantMean || math.Abs(deviation-want) > 1e-9*want {
			t.Errorf("%d values: mean %g, deviation %g, want %g and %g", n, mean, deviation, wantMean, want)
		}
		slices.Sort(x)
		for p := 0.0; p <= 1; p += 0.01 {
			if got, want := Quantile(p, x), stat.Quantile(p, stat.Empirical, x, nil); got != want {
				t.Errorf("%d values: quantile %g = %g, want %g", n, p, got, want)
			}
		}
	}
}
