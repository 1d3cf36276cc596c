package stats

import (
	"math"
	"testing"
)

func isClose(a, b, within float64) bool { return math.Abs(a-b) <= within }

func TestHedgesG(t *testing.T) {
	// Means 3 and 5 of five values each, SD sqrt(2.5) both: d = 1.2649, J(8) = 0.9027.
	a, b := EstimateMean([]float64{1, 2, 3, 4, 5}), EstimateMean([]float64{3, 4, 5, 6, 7})
	e := ComputeEffect(a, b)
	if !e.OK || !e.HasHedges || !isClose(e.Uncorrected, 1.26491, 1e-5) || !isClose(e.Correction, 0.90273, 1e-4) ||
		!isClose(e.Hedges, 1.14187, 1e-4) {
		t.Errorf("%+v", e)
	}
	if back := ComputeEffect(b, a); back.Hedges != -e.Hedges {
		t.Errorf("swapped: %v, want %v", back.Hedges, -e.Hedges)
	}
}

func TestHedgesGPoolsByDegreesOfFreedom(t *testing.T) {
	a, b := Estimate{N: 3, Mean: 10, SD: 1}, Estimate{N: 21, Mean: 12, SD: 4}
	e := ComputeEffect(a, b)
	// sqrt((2*1 + 20*16) / 22) = 3.8257; J(22) = 0.9655
	if !isClose(e.Hedges, 0.9655*2/3.8257, 1e-3) || !isClose(e.Uncorrected, 2/math.Sqrt(8.5), 1e-9) {
		t.Errorf("%+v", e)
	}
}

func TestEffectWithoutSpreadOrRepetitions(t *testing.T) {
	for name, c := range map[string]struct {
		a, b       Estimate
		ok, hedges bool
	}{
		"no spread":      {EstimateMean([]float64{2, 2}), EstimateMean([]float64{3, 3}), false, false},
		"one value each": {EstimateMean([]float64{2}), EstimateMean([]float64{3}), false, false},
		"printed SDs":    {Estimate{N: 1, Mean: 1, SD: 1}, Estimate{N: 1, Mean: 2, SD: 1}, true, false},
		"nothing":        {Estimate{}, Estimate{}, false, false},
	} {
		e := ComputeEffect(c.a, c.b)
		if e.OK != c.ok || e.HasHedges != c.hedges || math.IsNaN(e.Hedges) || math.IsInf(e.Uncorrected, 0) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestEstimateDifference(t *testing.T) {
	a, b := EstimateMean([]float64{27.5, 21.0, 19.0, 23.6, 17.0, 17.9}), EstimateMean([]float64{27.1, 22.0, 20.8, 23.4, 23.4, 23.5})
	d := EstimateDifference(a, b)
	// Standard error 1.8351 with 7.64 degrees of freedom, whose t is 2.325.
	if !isClose(d.Mean, 2.36667, 1e-4) || !isClose(d.HalfWidth, 4.267, 0.01) {
		t.Errorf("%+v", d)
	}
	if d := EstimateDifference(EstimateMean([]float64{1}), b); d.HasInterval() {
		t.Errorf("an interval from one value: %+v", d)
	}
}

func TestExactPermutationTest(t *testing.T) {
	// Of the 252 deals of ten values into five and five only two are as extreme.
	p := PermutationTest([]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 1)
	if !p.OK || !p.Exact || p.Deals != 252 || !isClose(p.P, 2.0/252, 1e-12) {
		t.Errorf("%+v", p)
	}
	if p := PermutationTest([]float64{1, 2, 3}, []float64{1, 2, 3}, 1); p.P != 1 {
		t.Errorf("equal samples: %+v", p)
	}
	if p := PermutationTest([]float64{4, 4}, []float64{4, 4, 4}, 1); p.P != 1 {
		t.Errorf("identical values: %+v", p)
	}
	for _, c := range [][2][]float64{{nil, {1}}, {{1}, {2}}} {
		if p := PermutationTest(c[0], c[1], 1); p.OK {
			t.Errorf("%v: %+v", c, p)
		}
	}
}

func TestSampledPermutationTest(t *testing.T) {
	var a, b, far []float64
	for i := range 30 {
		a, b, far = append(a, float64(i)), append(b, float64(i)+0.5), append(far, float64(i)+100)
	}
	alike, apart := PermutationTest(a, b, 7), PermutationTest(a, far, 7)
	if alike.Exact || alike.P < 0.5 {
		t.Errorf("similar samples: %+v", alike)
	}
	if apart.P > 0.001 || apart.P <= 0 {
		t.Errorf("samples far apart: %+v", apart)
	}
	if again := PermutationTest(a, b, 7); again != alike {
		t.Errorf("the same seed: %+v, then %+v", alike, again)
	}
}
