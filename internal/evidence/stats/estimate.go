// Package stats computes means with confidence intervals: over independent repetitions, and over the correlated seconds
// of one trial. It does no I/O, and no result is NaN or infinite.
package stats

import (
	"math"
	"slices"
)

// Confidence is the level of all intervals.
const Confidence = 0.95

// Estimate is a mean over independent repetitions.
type Estimate struct {
	N    int
	Mean float64
	// SD is the standard deviation of the sample (n-1), 0 for fewer than two values.
	SD float64
	// HalfWidth of the 95 % confidence interval of the mean, t(n-1) x SD / sqrt(n); 0 for fewer than two values.
	HalfWidth float64
}

// EstimateMean estimates the mean of independent values. For the seconds of one trial, use BatchMeans.
func EstimateMean(values []float64) Estimate {
	e := Estimate{N: len(values)}
	switch len(values) {
	case 0:
		return e
	case 1:
		e.Mean = values[0]
		return e
	}
	e.Mean, e.SD = MeanDeviation(values)
	e.SD *= math.Sqrt(float64(e.N) / float64(e.N-1))
	e.HalfWidth = tQuantile(float64(e.N-1)) * e.SD / math.Sqrt(float64(e.N))
	return e
}

// HasInterval reports whether HalfWidth is meaningful.
func (e Estimate) HasInterval() bool { return e.N >= 2 }

// EstimateRatio estimates a.Mean / b.Mean for independent a and b by the delta method: relative variances of the means
// add up, with Welch and Satterthwaite's degrees of freedom (Welch 1947). It is the zero Estimate if b.Mean is 0, and
// has no interval if a or b has none; N is the smaller of both.
func EstimateRatio(a, b Estimate) Estimate {
	if b.Mean == 0 {
		return Estimate{}
	}
	r := Estimate{N: min(a.N, b.N), Mean: a.Mean / b.Mean}
	if !a.HasInterval() || !b.HasInterval() || a.Mean == 0 {
		r.N = min(r.N, 1)
		return r
	}
	va, vb := a.relativeVariance(), b.relativeVariance()
	if va+vb == 0 {
		return r
	}
	df := (va + vb) * (va + vb) / (va*va/float64(a.N-1) + vb*vb/float64(b.N-1))
	se := math.Abs(r.Mean) * math.Sqrt(va+vb)
	r.SD = se * math.Sqrt(float64(r.N))
	r.HalfWidth = tQuantile(df) * se
	return r
}

func (e Estimate) relativeVariance() float64 {
	return e.SD * e.SD / float64(e.N) / (e.Mean * e.Mean)
}

// tQuantile is the two-sided quantile of Student's t distribution at Confidence.
func tQuantile(df float64) float64 {
	return StudentQuantile(1-(1-Confidence)/2, df)
}

// Effect is the difference of two means in standard deviations, positive if the second is larger.
type Effect struct {
	// Uncorrected divides by sqrt((SD1^2 + SD2^2) / 2), the form that some documents call Hedges' g without stating the
	// number of values.
	Uncorrected float64
	// Hedges is Hedges' g: Cohen's d over the SD pooled by degrees of freedom, times the correction J for small
	// samples. 0 unless HasHedges.
	Hedges float64
	// Correction is J, below 1: 0.90 for five repetitions each.
	Correction float64
	// OK is false if both SDs are 0.
	OK bool
	// HasHedges is false if either mean has fewer than two values.
	HasHedges bool
}

// ComputeEffect compares two means (Hedges, "Distribution Theory for Glass's Estimator of Effect Size and Related
// Estimators", 1981: the exact J, by the gamma function).
func ComputeEffect(a, b Estimate) Effect {
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

// EstimateDifference estimates b.Mean - a.Mean for independent a and b, with Welch's interval (Welch 1947), which
// allows different SDs. It has no interval if a or b has none; N is the smaller of both.
func EstimateDifference(a, b Estimate) Estimate {
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
	d.HalfWidth = tQuantile(df) * math.Sqrt(va+vb)
	d.SD = math.Sqrt((va + vb) * float64(d.N))
	return d
}

// Median returns the median, 0 without values. It does not modify values.
func Median[T int64 | float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	default:
		return sorted[n/2]
	}
}
