package netprofile

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"skerry/internal/link"
)

const (
	// draws is how many values of a way's jitter stand for all, points how many quantiles are compared: those
	// of the middle nine tenths.
	draws, points = 128, 91
	// leastJitter, in ms, is what an emulator does not tell from none.
	leastJitter = 0.01
)

// fit is the distance, the jitter and the distribution whose round trips come nearest to sorted ones, in
// ms. A round trip has two ways, whose jitters are drawn each on its own:
//
//	quantile of the round trips ≈ RTT + jitter x quantile of the sum of two draws
//
// which is a line for each distribution; the one is taken that leaves the least, moved so that medians are
// the same. The outermost twentieths have no part in it: what a crowded machine held up for a while is no
// distance.
func fit(trips []float64) Shape {
	q := make([]float64, points)
	for i := range q {
		q[i] = quantile(trips, i)
	}
	best, least := Shape{RTTMS: median(trips)}, math.Inf(1)
	for _, d := range []link.Distribution{link.Normal, link.Uniform, link.Pareto, link.ParetoNormal} {
		sums := twice(d)
		rtt, jitter := stat.LinearRegression(sums, q, nil, false)
		left := 0.0
		for i := range q {
			off := q[i] - rtt - jitter*sums[i]
			left += off * off
		}
		if left < least && jitter >= leastJitter {
			shape := Shape{RTTMS: median(trips) - jitter*sums[points/2], JitterMS: jitter, Distribution: d}
			if shape.JitterMS = min(jitter, shape.maxJitterMS()); shape.JitterMS < leastJitter {
				continue
			}
			best, least = shape, left
		}
	}
	return best
}

// maxJitterMS is the largest jitter of each way that a link of the shape can have, to the microsecond.
func (s Shape) maxJitterMS() float64 {
	way := link.Quality{Latency: time.Duration(s.RTTMS / 2 * float64(time.Millisecond)), Distribution: s.Distribution}
	return math.Floor(way.MaxJitter().Seconds()*1e6) / 1e3
}

// twice are the quantiles of the sum of two draws.
func twice(d link.Distribution) []float64 {
	one := d.Table(draws)
	sums := make([]float64, 0, draws*draws)
	for _, a := range one {
		for _, b := range one {
			sums = append(sums, a+b)
		}
	}
	slices.Sort(sums)
	q := make([]float64, points)
	for i := range q {
		q[i] = quantile(sums, i)
	}
	return q
}

// quantile is the i-th of those that are compared, from 5 to 95 %.
func quantile(sorted []float64, i int) float64 {
	return stat.Quantile(float64(i+5)/100, stat.Empirical, sorted, nil)
}
