package ycsb

import (
	"math"
	"sync/atomic"
)

type chooser struct {
	kind       string
	low, count int64 // range of loaded records
	// end is the end of this client's part of the table, 0 for the whole table. YCSB's zipfian
	// draws one record more, which belongs to another part.
	end      int64
	inserts  *Inserts
	sequence *atomic.Int64 // shared by all workers

	scrambled ScrambledZipf
	zipf      zipf
	hot       int64 // number of records in the hot set
	hotShare  float64
	decay     float64 // of the exponential, per record
}

func newChooser(w *Workload, inserts *Inserts, sequence *atomic.Int64) chooser {
	c := chooser{kind: w.Requests.Distribution, low: w.InsertStart, count: w.InsertCount, inserts: inserts, sequence: sequence}
	switch c.kind {
	case Zipfian:
		c.scrambled = NewScrambledZipf(w.scrambledItems())
		if end := w.InsertStart + w.InsertCount; end < w.RecordCount {
			c.end = end
		}
	case ZipfianTrue:
		c.zipf = newZipfian(c.count)
	case Latest:
		c.zipf = newZipfian(max(1, inserts.Last()))
	case Hotspot:
		c.hot = int64(float64(c.count) * w.Requests.HotData)
		c.hotShare = w.Requests.HotOperations
		switch c.hot { // never draw from an empty set
		case 0:
			c.hotShare = 0
		case c.count:
			c.hotShare = 1
		}
	case Exponential:
		c.decay = -math.Log(1-w.Requests.Percentile/100) / (float64(w.RecordCount) * w.Requests.Fraction)
	}
	return c
}

// scrambledItems is the number of items of YCSB's scrambled zipfian: the records, the expected
// inserts, and one more, since YCSB's range includes its end. Records that are not inserted yet are
// drawn again.
func (w *Workload) scrambledItems() int64 { return w.InsertCount + w.expectedInserts() + 1 }

// expectedInserts is the maximum number of inserted records that requests can choose. YCSB doubles
// the expected number, so that the hash of a key does not change when a run inserts more.
func (w *Workload) expectedInserts() int64 {
	return int64(float64(w.ExpectedOperations) * w.Mix.Insert * 2)
}

// ExpectedInserts returns the number of inserted records that requests can choose, and whether
// there is such a bound. Only a zipfian workload that inserts has one. Records inserted beyond it
// are never chosen.
func (w *Workload) ExpectedInserts() (n int64, bounded bool) {
	if w.Requests.Distribution != Zipfian || w.Mix.Insert == 0 {
		return 0, false
	}
	return w.expectedInserts(), true
}

func (c *chooser) draw(r *Rand) int64 {
	for {
		if n := c.drawCandidate(r); n >= 0 && (c.end == 0 || n < c.end) && c.inserts.readable(n) {
			return n
		}
	}
}

func (c *chooser) drawCandidate(r *Rand) int64 {
	switch c.kind {
	case Zipfian:
		return c.low + c.scrambled.Draw(r.Float64())
	case ZipfianTrue:
		return c.low + c.zipf.rank(r.Float64())
	case Latest:
		last := c.inserts.Last()
		if last > c.zipf.items {
			c.zipf.grow(last)
		}
		return last - c.zipf.rank(r.Float64())
	case Hotspot:
		if r.Float64() < c.hotShare {
			return c.low + r.Int64N(c.hot)
		}
		return c.low + c.hot + r.Int64N(c.count-c.hot)
	case Exponential:
		// 1-u is in (0, 1], so its logarithm is finite.
		return c.inserts.Last() - int64(-math.Log(1-r.Float64())/c.decay)
	case Sequential:
		return c.low + (c.sequence.Add(1)-1)%c.count
	}
	return c.low + r.Int64N(c.count)
}

const (
	zipfTheta = 0.99
	// YCSB's scrambled zipfian draws ranks from 0 to 10^10 with a precomputed zeta.
	scrambledItems = 10_000_000_001
	scrambledZeta  = 26.46902820178302
)

// zipf draws ranks from 0 with a frequency of about 1/(rank+1)^0.99, by the method of Gray et al.,
// "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994). Ranks 0 and 1 are exact;
// higher ranks use an inverted continuous approximation.
type zipf struct {
	items       int64
	zeta        float64 // sum of 1/i^theta for i in 1..items
	second      float64 // u x zeta below it is rank 1
	alpha, eta  float64
	scale, base float64 // items, 1 - eta
	first       float64 // numerator of eta, for the initial number of items
}

func newZipfian(items int64) zipf { return newZipf(items, zeta(items)) }

func newZipf(items int64, zetan float64) zipf {
	z := zipf{second: 1 + math.Pow(0.5, zipfTheta), alpha: 1 / (1 - zipfTheta), first: 1 - math.Pow(2/float64(items), 1-zipfTheta)}
	z.resize(items, zetan)
	return z
}

func (z *zipf) resize(items int64, zetan float64) {
	z.items, z.zeta, z.eta = items, zetan, 1
	if items > 2 { // otherwise there are only ranks 0 and 1
		z.eta = z.first / (1 - z.second/zetan)
	}
	z.scale, z.base = float64(items), 1-z.eta
}

// rank maps u, uniform in [0, 1), to a rank.
func (z *zipf) rank(u float64) int64 {
	switch uz := u * z.zeta; {
	case uz < 1 || z.items == 1:
		return 0
	case uz < z.second || z.items == 2:
		return 1
	}
	// exp(a log x) equals x^a to 14 digits here, at a third of the cost of math.Pow.
	r := int64(z.scale * math.Exp(z.alpha*math.Log(z.eta*u+z.base)))
	return min(r, z.items-1)
}

// grow raises the number of items as YCSB's ZipfianGenerator does: zeta follows the growth, but eta
// keeps the initial number of items in its numerator. With g times as many items, ranks from 2 to
// 2g are never drawn, and high ranks are drawn more often. This is kept, since results are compared
// with YCSB's.
func (z *zipf) grow(items int64) {
	const few = 64 // adding terms is cheaper than zeta up to here
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

// zeta is the sum of i^-theta for i in 1..n. It adds the first terms and computes the rest by the
// Euler-Maclaurin formula, with an error below 10^-15.
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

// ScrambledZipf is YCSB's scrambled zipfian: a rank of a zipfian over 10^10 items, hashed onto the
// items. Several ranks share an item, so that the hottest of 1000 items gets 3.8 % of the draws,
// where a true zipfian gives it 13 %. It is kept for comparability; see ZipfianTrue.
type ScrambledZipf struct {
	zipf  zipf
	items int64
}

// NewScrambledZipf returns a ScrambledZipf over at least one item.
func NewScrambledZipf(items int64) ScrambledZipf {
	return ScrambledZipf{newZipf(scrambledItems, scrambledZeta), items}
}

// Item maps a rank to an item.
func (s *ScrambledZipf) Item(rank int64) int64 { return fnvHash(rank) % s.items }

// Draw maps u, uniform in [0, 1), to an item.
func (s *ScrambledZipf) Draw(u float64) int64 { return s.Item(s.zipf.rank(u)) }
