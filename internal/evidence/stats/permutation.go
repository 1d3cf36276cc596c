package stats

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
)

// Permutation is a test of whether two samples have the same distribution: how often a random division of all values
// into groups of the same sizes separates their means at least as far.
type Permutation struct {
	// P is that share, two-sided.
	P float64
	// Deals is the number of divisions examined. Exact is true if these were all; otherwise they were drawn, and P
	// includes the real one (Phipson and Smyth 2010), so that it is never 0.
	Deals int
	Exact bool
	// OK is false if a sample is empty, or both have one value.
	OK bool
}

const (
	// exactDeals is the maximum number of divisions for an exact test: two groups of nine.
	exactDeals = 50_000
	// drawnDeals give a P of 0.05 to within 0.002 (one standard error).
	drawnDeals = 10_000
	// ties is the relative difference below which two differences of means are equal: sums of the same values in
	// another order differ by rounding.
	ties = 1e-9
)

// PermutationTest compares the means of a and b. The same seed gives the same result.
func PermutationTest(a, b []float64, seed uint64) Permutation {
	n, k := len(a)+len(b), len(a)
	if len(a) == 0 || len(b) == 0 || n < 3 {
		return Permutation{}
	}
	all := append(append(make([]float64, 0, n), a...), b...)
	total := 0.0
	for _, x := range all {
		total += x
	}
	apart := func(sum float64) float64 { return math.Abs(sum/float64(k) - (total-sum)/float64(n-k)) }
	seen := apart(sumOf(a))
	limit := seen - ties*math.Max(seen, math.Abs(total)/float64(n))
	p := Permutation{OK: true}
	as := 0
	if deals(n, k) <= exactDeals {
		p.Exact = true
		eachDeal(all, k, func(sum float64) {
			p.Deals++
			if apart(sum) >= limit {
				as++
			}
		})
		p.P = float64(as) / float64(p.Deals)
		return p
	}
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	for p.Deals = 0; p.Deals < drawnDeals; p.Deals++ {
		for i := range k { // the first k of a shuffle
			j := i + r.IntN(n-i)
			all[i], all[j] = all[j], all[i]
		}
		if apart(sumOf(all[:k])) >= limit {
			as++
		}
	}
	p.P = float64(as+1) / float64(p.Deals+1)
	return p
}

func sumOf(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum
}

// deals is n over k, or a value above exactDeals.
func deals(n, k int) int {
	c := 1
	for i := range min(k, n-k) {
		if c = c * (n - i) / (i + 1); c > exactDeals {
			return c
		}
	}
	return c
}

// eachDeal calls visit with the sum of every choice of k values.
func eachDeal(all []float64, k int, visit func(sum float64)) {
	var choose func(from, left int, sum float64)
	choose = func(from, left int, sum float64) {
		if left == 0 {
			visit(sum)
			return
		}
		for i := from; i <= len(all)-left; i++ {
			choose(i+1, left-1, sum+all[i])
		}
	}
	choose(0, k, 0)
}

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
