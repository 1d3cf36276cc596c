package link

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat"
)

// JitterReach is the largest value of a jitter table, in standard deviations: what
// netem's tables, 16-bit numbers in units of 1/8192, can hold.
const JitterReach = 32767.0 / 8192

// paretoShape is the shape of iproute2's pareto tables.
const paretoShape = 3.0

// lowest is how far below the mean delays reach, in units of the jitter. The normal
// distribution is cut there, which moves its mean by 0.8 % of the jitter.
var lowest = map[Distribution]float64{"": 2, Normal: 2, Uniform: 1, Pareto: 0.83, ParetoNormal: 1.8}

// MaxJitter is the largest jitter that the latency can hold: with more, some delays would have to be
// negative, and cutting these off would raise the mean.
func (q Quality) MaxJitter() time.Duration {
	return time.Duration(float64(q.Latency) / lowest[q.Distribution])
}

// Range returns the lowest and the highest value of the jitter and its standard deviation, in
// units of Quality.Jitter.
func (d Distribution) Range() (low, high, deviation float64) {
	switch d {
	case Uniform:
		return -1, 1, 1 / math.Sqrt(3)
	case Pareto, ParetoNormal:
		return -lowest[d], JitterReach, 1
	default:
		return -JitterReach, JitterReach, 1
	}
}

// Table tabulates d for drawing jitter: n values at the middles of n equal steps of
// cumulative probability, to be picked uniformly and multiplied by Quality.Jitter.
// They have mean 0 and standard deviation 1 (Uniform: half-width 1) and stay within
// JitterReach on both sides. The shapes are those of iproute2's tables: pareto has
// shape 3, paretonormal is a quarter normal and three quarters pareto, quantile by
// quantile.
func (d Distribution) Table(n int) []float64 {
	table := make([]float64, n)
	for i := range table {
		table[i] = d.quantile((float64(i) + 0.5) / float64(n))
	}
	if d == Uniform {
		return table
	}
	// Cutting the tail moves mean and deviation, putting them right moves the
	// tail: a few rounds settle both.
	for range 50 {
		mean, deviation := stat.PopMeanStdDev(table, nil)
		for i, x := range table {
			table[i] = max(-JitterReach, min(JitterReach, (x-mean)/deviation))
		}
	}
	return table
}

func (d Distribution) quantile(p float64) float64 {
	switch d {
	case Uniform:
		return 2*p - 1
	case Pareto:
		return pareto(p)
	case ParetoNormal:
		return normal(p)/4 + 3*pareto(p)/4
	default:
		return normal(p)
	}
}

func normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// pareto has mean 0 and standard deviation 1: the minimum of the plain distribution
// is 1, its mean a/(a-1), its variance a/((a-1)²(a-2)).
func pareto(p float64) float64 {
	const a = paretoShape
	x := math.Pow(1-p, -1/a)
	return (x - a/(a-1)) / math.Sqrt(a/((a-1)*(a-1)*(a-2)))
}
