package ycsb

import "math"

const (
	zipfTheta = 0.99
	// YCSB's scrambled zipfian draws ranks out of 0..10^10 with a zeta computed once.
	scrambledItems = 10_000_000_001
	scrambledZeta  = 26.46902820178302
)

// Zipf draws ranks 0..Items-1 with a frequency of about 1/(rank+1)^0.99, by the method
// of Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD
// 1994): exact for ranks 0 and 1, an inverted continuous approximation above.
type Zipf struct {
	items       int64
	zeta        float64 // the sum of 1/i^theta for i in 1..items
	second      float64 // below it, u x zeta is rank 1
	alpha, eta  float64
	scale, base float64 // items, 1 - eta
	first       float64 // the numerator of eta, for the number of items at the beginning
}

// NewZipf is over so many items, at least one.
func NewZipf(items int64) Zipf { return newZipf(items, zeta(items)) }

func newZipf(items int64, zetan float64) Zipf {
	z := Zipf{second: 1 + math.Pow(0.5, zipfTheta), alpha: 1 / (1 - zipfTheta), first: 1 - math.Pow(2/float64(items), 1-zipfTheta)}
	z.resize(items, zetan)
	return z
}

// resize sets the number of items and their zeta.
func (z *Zipf) resize(items int64, zetan float64) {
	z.items, z.zeta, z.eta = items, zetan, 1
	if items > 2 { // below, ranks 0 and 1 are all there are
		z.eta = z.first / (1 - z.second/zetan)
	}
	z.scale, z.base = float64(items), 1-z.eta
}

// Rank maps u, uniform in [0, 1), to a rank.
func (z *Zipf) Rank(u float64) int64 {
	switch uz := u * z.zeta; {
	case uz < 1 || z.items == 1:
		return 0
	case uz < z.second || z.items == 2:
		return 1
	}
	// exp(a log x) is x^a to 14 digits here, at a third of math.Pow's cost.
	r := int64(z.scale * math.Exp(z.alpha*math.Log(z.eta*u+z.base)))
	return min(r, z.items-1)
}

// grow raises the number of items as YCSB's ZipfianGenerator does: zeta follows the growth, but eta keeps the
// number of items at the beginning in its numerator. With g times as many items, ranks from 2 to 2g are never
// drawn, and high ranks are drawn more often. This is kept, since figures are compared with YCSB's.
func (z *Zipf) grow(items int64) {
	const few = 64 // terms that are cheaper to add than zeta is to compute
	if items-z.items > few {
		z.resize(items, zeta(items))
		return
	}
	sum := z.zeta
	for i := z.items + 1; i <= items; i++ {
		sum += math.Pow(float64(i), -zipfTheta)
	}
	z.resize(items, sum)
}

// zeta is the sum of i^-theta for i in 1..n: the first terms one by one, the rest by
// the Euler-Maclaurin formula, whose error is below 10^-15 from there on.
func zeta(n int64) float64 {
	const head = 1000
	sum := 0.0
	for i := int64(1); i <= min(n, head); i++ {
		sum += math.Pow(float64(i), -zipfTheta)
	}
	if n <= head {
		return sum
	}
	a, b := float64(head), float64(n)
	f := func(x float64) float64 { return math.Pow(x, -zipfTheta) }
	integral := (math.Pow(b, 1-zipfTheta) - math.Pow(a, 1-zipfTheta)) / (1 - zipfTheta)
	return sum + integral + (f(b)-f(a))/2 + zipfTheta/12*(f(a)/a-f(b)/b)
}

// ScrambledZipf is YCSB's scrambled zipfian: a rank of a zipfian over 10^10 items, hashed
// onto the items. Several ranks share an item, so that the hottest of 1000 gets 3.8 %
// of the draws, where a true zipfian over 1000 gives its hottest 13 %. It is kept for
// comparability; ZipfianTrue is the other.
type ScrambledZipf struct {
	zipf  Zipf
	items int64
}

// NewScrambledZipf is over so many items, at least one.
func NewScrambledZipf(items int64) ScrambledZipf {
	return ScrambledZipf{newZipf(scrambledItems, scrambledZeta), items}
}

// Item is where a rank falls.
func (s *ScrambledZipf) Item(rank int64) int64 { return Hash(rank) % s.items }

// Draw maps u, uniform in [0, 1), to an item.
func (s *ScrambledZipf) Draw(u float64) int64 { return s.Item(s.zipf.Rank(u)) }
