package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Effect is how far apart two means are, in standard deviations: positive where the second
// is the larger.
type Effect struct {
	// Uncorrected divides by sqrt((SD1^2 + SD2^2) / 2) and leaves it at that: the form
	// that documents call Hedges' g without saying how many values they had.
	Uncorrected float64
	// Hedges is Hedges' g: Cohen's d over the SD pooled by degrees of freedom, times the
	// correction J for small samples. 0 unless HasHedges.
	Hedges float64
	// Correction is J, below 1: 0.90 for five repetitions each.
	Correction float64
	// OK is false where both SDs are 0, which leaves nothing to divide by.
	OK bool
	// HasHedges is false where either mean is of fewer than two values.
	HasHedges bool
}

// EffectOf compares two means (Hedges, "Distribution Theory for Glass's Estimator of Effect
// Size and Related Estimators", 1981: the exact J, by the gamma function).
func EffectOf(a, b Estimate) Effect {
	var e Effect
	if rms := math.Sqrt((a.SD*a.SD + b.SD*b.SD) / 2); rms > 0 {
		e.Uncorrected, e.OK = (b.Mean-a.Mean)/rms, true
	}
	df := float64(a.N + b.N - 2)
	if !e.OK || a.N < 2 || b.N < 2 {
		return e
	}
	pooled := math.Sqrt((float64(a.N-1)*a.SD*a.SD + float64(b.N-1)*b.SD*b.SD) / df)
	upper, _ := math.Lgamma(df / 2)
	lower, _ := math.Lgamma((df - 1) / 2)
	e.Correction = math.Exp(upper-lower) / math.Sqrt(df/2)
	e.Hedges, e.HasHedges = e.Correction*(b.Mean-a.Mean)/pooled, true
	return e
}

// Difference estimates b.Mean - a.Mean for independent a and b, with Welch's interval
// (Welch 1947): the SDs need not be alike. It has no interval when a or b has none; N is
// the smaller of both.
func Difference(a, b Estimate) Estimate {
	d := Estimate{N: min(a.N, b.N), Mean: b.Mean - a.Mean}
	if !a.HasInterval() || !b.HasInterval() {
		d.N = min(d.N, 1)
		return d
	}
	va, vb := a.SD*a.SD/float64(a.N), b.SD*b.SD/float64(b.N)
	if va+vb == 0 {
		return d
	}
	df := (va + vb) * (va + vb) / (va*va/float64(a.N-1) + vb*vb/float64(b.N-1))
	d.HalfWidth = distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1-(1-Confidence)/2) * math.Sqrt(va+vb)
	d.SD = math.Sqrt((va + vb) * float64(d.N))
	return d
}
