// Package stats is the arithmetic behind every figure with an interval: means over
// independent repetitions, and the mean of one trial whose seconds depend on each other.
// It is pure; no result is ever NaN or infinite.
package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the level of every interval of this package.
const Confidence = 0.95

// Estimate is a mean over independent repetitions.
type Estimate struct {
	N    int
	Mean float64
	// SD is the standard deviation of the sample (n-1), 0 for fewer than two values.
	SD float64
	// HalfWidth of the 95 % confidence interval of the mean, t(n-1) x SD / sqrt(n); 0 where
	// there is none because there are fewer than two values.
	HalfWidth float64
}

// Of estimates the mean of values that are independent of each other. Seconds of one
// trial are not: BatchMeans is for those.
func Of(values []float64) Estimate {
	e := Estimate{N: len(values)}
	switch len(values) {
	case 0:
		return e
	case 1:
		e.Mean = values[0]
		return e
	}
	e.Mean, e.SD = stat.MeanStdDev(values, nil)
	e.HalfWidth = tQuantile(float64(e.N-1)) * e.SD / math.Sqrt(float64(e.N))
	return e
}

// HasInterval tells whether HalfWidth means anything.
func (e Estimate) HasInterval() bool { return e.N >= 2 }

// Ratio estimates a.Mean / b.Mean for independent a and b by the delta method: relative
// variances of the means add up, with Welch and Satterthwaite's degrees of freedom
// (Welch 1947). It is the zero Estimate when b.Mean is 0, and has no interval when a or b has
// none; N is the smaller of both.
func Ratio(a, b Estimate) Estimate {
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

// relativeVariance of the mean.
func (e Estimate) relativeVariance() float64 {
	return e.SD * e.SD / float64(e.N) / (e.Mean * e.Mean)
}

// tQuantile is the two-sided quantile of Student's t distribution at Confidence.
func tQuantile(df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(1 - (1-Confidence)/2)
}
