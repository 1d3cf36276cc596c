package load

import (
	"math/bits"
	"time"
)

// recorder counts times for one interval in the buckets of a Histogram, touching no
// more memory than the times need: it is merged and cleared over the range in use.
type recorder struct {
	counts    []uint32
	low, high int // indices in use; none while low > high
}

// The bucket layout of HdrHistogram for a unit of 1 ns and 3 digits: 2048 buckets of
// 1 ns, then 1024 for each doubling.
const (
	subBits = 11
	subHalf = 1 << (subBits - 1)
)

// maxBuckets is how many there are up to maxValue; HdrHistogram completes the doubling.
const maxBuckets = (42 - subBits + 2) * subHalf

func newRecorder() *recorder {
	return &recorder{counts: make([]uint32, maxBuckets), low: maxBuckets, high: -1}
}

// bucketIndex is where v, not negative, is counted.
func bucketIndex(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-subBits)
	return shift<<(subBits-1) + int(v>>shift)
}

// bucketValue is the least value of a bucket.
func bucketValue(i int) int64 {
	shift := max(0, i>>(subBits-1)-1)
	return int64(i-shift<<(subBits-1)) << shift
}

func (r *recorder) add(d time.Duration) {
	i := bucketIndex(min(max(int64(d), 0), maxValue))
	r.counts[i]++
	r.low, r.high = min(r.low, i), max(r.high, i)
}

// drain moves all to h.
func (r *recorder) drain(h *Histogram) {
	if r.low > r.high {
		return
	}
	h.cover(r.low, r.high)
	to := h.counts[r.low-h.low:]
	for i, n := range r.counts[r.low : r.high+1] {
		to[i] += int64(n)
		h.total += int64(n)
	}
	clear(r.counts[r.low : r.high+1])
	r.low, r.high = maxBuckets, -1
}
