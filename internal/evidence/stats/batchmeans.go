package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// How a trial's seconds become batches, and when a trial is long enough. With these, 95 %
// intervals of synthetic first-order autoregressive series cover the true mean so often
// (TestCoverage; phi is the correlation of neighbouring seconds):
//
//	phi                      0     0.3    0.6    0.8
//	after 40 seconds        96 %   94 %   92 %   90 %
//	after 160 seconds       97 %   96 %   96 %   94 %
//	when Reached stops it   95 %   93 %   87 %   80 %
const (
	// minBatches: with fewer, Student's t is so wide and the correlation of batches
	// so ill known that an interval says little.
	minBatches = 10
	// aimBatches is how many batches a longer series is cut into: few and long, so that
	// what is left of the correlation between them is small.
	aimBatches = 15
	// minBatch is the shortest batch, in observations.
	minBatch = 2
	// holdFor is how many observations in a row must find the interval narrow enough.
	// A single look would stop on a lucky stretch.
	holdFor = 5
	// maxCorrelation bounds the correction of an interval at a factor of 4.4.
	maxCorrelation = 0.9
)

// BatchMeans estimates the mean of one trial while it goes on, from observations at
// equal distances of time (a second's rate each) that are correlated.
//
// The method is that of batch means (Law, "Simulation Modeling and Analysis", 5th ed.,
// 9.5.3; Fishman and Yarberry, "An Implementation of the Batch Means Method", 1997): the
// series is cut into batches, whose means are nearly independent if batches are long. Batches
// grow with the series, so that their number stays between 10 and 22. As trials are short, the
// correlation that is left between neighbouring batches (corrected for its bias in small
// samples, Marriott and Pope 1954) widens the interval by sqrt((1+r)/(1-r)), as Skart does
// (Tafazzoli, Wilson, Lada and Steiger 2011). Refusing an interval until a test finds
// the batches uncorrelated, as von Neumann's, covers worse at these lengths: such a test
// passes just when chance hides the correlation.
//
// The zero value is not ready; a BatchMeans is not safe for concurrent use.
type BatchMeans struct {
	xs []float64

	checkedAt int // how many observations there were when Reached looked last
	held      int // how many looks in a row found it narrow enough
}

// BatchInterval is what BatchMeans knows about a mean.
type BatchInterval struct {
	Mean float64
	// HalfWidth of the 95 % confidence interval; 0 unless OK.
	HalfWidth float64
	Batches   int // 0 unless OK
	BatchSize int // observations a batch; 0 unless OK
	// Correlation of neighbouring batches, for which HalfWidth is corrected when positive.
	Correlation float64
	// OK tells that there are enough observations for an interval: 20.
	OK bool
}

// NewBatchMeans returns an estimator without observations.
func NewBatchMeans() *BatchMeans { return &BatchMeans{} }

// Add takes the next observation. One that is no number is left out.
func (b *BatchMeans) Add(x float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		b.xs = append(b.xs, x)
	}
}

// Interval estimates the mean of what was observed. The oldest observations that do not
// fill a batch are left out of it.
func (b *BatchMeans) Interval() BatchInterval {
	n := len(b.xs)
	size := max(minBatch, n/aimBatches)
	k := n / size
	if k < minBatches {
		return BatchInterval{Mean: mean(b.xs)}
	}
	means := make([]float64, k)
	rest := b.xs[n-k*size:]
	for i := range means {
		means[i] = mean(rest[i*size : (i+1)*size])
	}
	e, r := EstimateMean(means), lag1(means)
	half := e.HalfWidth
	if r > 0 {
		half *= math.Sqrt((1 + r) / (1 - r))
	}
	return BatchInterval{Mean: e.Mean, HalfWidth: half, Batches: k, BatchSize: size, Correlation: r, OK: true}
}

// lag1 estimates the correlation of neighbours, corrected for its bias and bounded.
func lag1(xs []float64) float64 {
	m := mean(xs)
	var products, squares float64
	for i, x := range xs {
		squares += (x - m) * (x - m)
		if i > 0 {
			products += (x - m) * (xs[i-1] - m)
		}
	}
	if squares == 0 {
		return 0
	}
	r := products / squares
	r += (1 + 3*r) / float64(len(xs))
	return max(-maxCorrelation, min(maxCorrelation, r))
}

// mean is 0 for no values.
func mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	return stat.Mean(xs, nil)
}

// Reached is the rule for stopping early: the half-width has been at most a share relative
// of the mean at the last 5 observations, 24 at least. It is asked once for every
// observation; asking again before the next one changes nothing.
//
// A rule that looks at its data stops somewhat too soon, on average: see the table above.
func (b *BatchMeans) Reached(relative float64) bool {
	if b.checkedAt != len(b.xs) {
		b.checkedAt = len(b.xs)
		if i := b.Interval(); i.OK && i.Mean > 0 && i.HalfWidth <= relative*i.Mean {
			b.held++
		} else {
			b.held = 0
		}
	}
	return b.held >= holdFor
}
