package stats

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
)

// StudentQuantile returns the quantile p, from 0.5 to 1, of Student's t distribution with df degrees of freedom.
func StudentQuantile(p, df float64) float64 {
	// CDF(x) = 1 - I(df/2, 1/2; df/(x^2+df)) / 2
	t := mathext.InvRegIncBeta(df/2, 0.5, 2*(1-p))
	return math.Sqrt(df * (1 - t) / t)
}

// DrawChiSquared draws from the chi-squared distribution with df >= 2 degrees of freedom (Marsaglia and Tsang, "A Simple
// Method for Generating Gamma Variables", 2000).
func DrawChiSquared(df float64, random *rand.Rand) float64 {
	d := df/2 - 1.0/3
	c := 1 / (3 * math.Sqrt(d))
	for {
		x := random.NormFloat64()
		v := 1 + x*c
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := random.Float64()
		if u < 1-0.0331*x*x*x*x || math.Log(u) < x*x/2+d*(1-v+math.Log(v)) {
			return 2 * d * v
		}
	}
}

// MeanDeviation returns the mean and the standard deviation of a whole population (divisor n) of at least one value.
func MeanDeviation(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, x := range values {
		mean += x
	}
	mean /= n
	squares, rest := 0.0, 0.0
	for _, x := range values {
		squares += (x - mean) * (x - mean)
		rest += x - mean // corrects the rounding error of mean
	}
	return mean, math.Sqrt(max(0, squares-rest*rest/n) / n)
}

// Quantile returns the smallest value that at least the share p of sorted values does not exceed.
func Quantile(p float64, sorted []float64) float64 {
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}
