package ycsb

import (
	"math"
	"sync/atomic"
)

// chooser draws key numbers for one worker.
type chooser struct {
	kind       string
	low, count int64 // the records chosen from, without those that the run inserts
	// end is where a part of the table ends, 0 for all of it: YCSB's zipfian draws one record more, which
	// is another part's.
	end      int64
	inserts  *Inserts
	sequence *atomic.Int64 // shared by all workers

	scrambled ScrambledZipf
	zipf      Zipf
	hot       int64 // records of the hot set
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
		c.zipf = NewZipf(c.count)
	case Latest:
		c.zipf = NewZipf(max(1, inserts.Last()))
	case Hotspot:
		c.hot = int64(float64(c.count) * w.Requests.HotData)
		c.hotShare = w.Requests.HotOperations
		switch c.hot { // a set that is empty cannot be drawn from
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

// scrambledItems is the number of items of YCSB's scrambled zipfian: the records, those
// that the run is expected to insert, and one more, since YCSB's range includes its end.
// What is not inserted yet is drawn again.
func (w *Workload) scrambledItems() int64 { return w.InsertCount + w.expectedInserts() + 1 }

// expectedInserts is how many inserted records requests can choose at most. YCSB doubles the
// expected number, so that the hash of a key does not move when a run inserts more.
func (w *Workload) expectedInserts() int64 {
	return int64(float64(w.ExpectedOperations) * w.Mix.Insert * 2)
}

// ExpectedInserts returns the number of inserted records that requests can choose, and whether there is
// such a bound: a zipfian workload that inserts has one. Records inserted beyond it are never chosen.
func (w *Workload) ExpectedInserts() (n int64, bounded bool) {
	if w.Requests.Distribution != Zipfian || w.Mix.Insert == 0 {
		return 0, false
	}
	return w.expectedInserts(), true
}

// draw chooses a record that is there.
func (c *chooser) draw(r *Rand) int64 {
	for {
		if n := c.drawCandidate(r); n >= 0 && (c.end == 0 || n < c.end) && c.inserts.Readable(n) {
			return n
		}
	}
}

func (c *chooser) drawCandidate(r *Rand) int64 {
	switch c.kind {
	case Zipfian:
		return c.low + c.scrambled.Draw(r.Float64())
	case ZipfianTrue:
		return c.low + c.zipf.Rank(r.Float64())
	case Latest:
		last := c.inserts.Last()
		if last > c.zipf.items {
			c.zipf.grow(last)
		}
		return last - c.zipf.Rank(r.Float64())
	case Hotspot:
		if r.Float64() < c.hotShare {
			return c.low + r.Int64N(c.hot)
		}
		return c.low + c.hot + r.Int64N(c.count-c.hot)
	case Exponential:
		// 1-u is in (0, 1]: its logarithm is finite.
		return c.inserts.Last() - int64(-math.Log(1-r.Float64())/c.decay)
	case Sequential:
		return c.low + (c.sequence.Add(1)-1)%c.count
	}
	return c.low + r.Int64N(c.count)
}
