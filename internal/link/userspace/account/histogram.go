package account

import (
	"math/bits"
	"sync/atomic"
	"time"

	"skerry/internal/link"
)

// Buckets are those of HDR histograms: 1 us up to 16 us, then 16 per power of two, so that a value is known within
// 6 %. Values above a minute count as a minute.
const (
	sub     = 16
	subBits = 4
	octaves = 22
	buckets = sub * (octaves + 1)
)

// Histogram counts the lateness of packets in microseconds, without allocations and locks. The zero value is empty. One
// goroutine records; any goroutine may read.
type Histogram struct {
	counts [buckets]atomic.Uint64
	max    atomic.Int64 // ns
}

// Record counts one duration.
func (h *Histogram) Record(ns int64) {
	ns = max(ns, 0)
	h.counts[bucket(uint64(ns)/1000)].Add(1)
	if ns > h.max.Load() {
		h.max.Store(ns)
	}
}

// Add adds the counts of other. The caller must be the only recorder of h.
func (h *Histogram) Add(other *Histogram) {
	for i := range other.counts {
		h.counts[i].Add(other.counts[i].Load())
	}
	h.max.Store(max(h.max.Load(), other.max.Load()))
}

func bucket(us uint64) int {
	if us < sub {
		return int(us)
	}
	shift := bits.Len64(us) - subBits - 1
	return min(sub*(shift+1)+int(us>>shift)-sub, buckets-1)
}

// upper returns the largest number of microseconds in bucket i.
func upper(i int) uint64 {
	if i < sub {
		return uint64(i)
	}
	shift := i/sub - 1
	return uint64(i%sub+sub+1)<<shift - 1
}

// Summary returns quantiles, zeros for an empty histogram.
func (h *Histogram) Summary() link.Lateness {
	var counts [buckets]uint64
	var total uint64
	for i := range counts {
		counts[i] = h.counts[i].Load()
		total += counts[i]
	}
	if total == 0 {
		return link.Lateness{Known: true}
	}
	most := time.Duration(h.max.Load())
	quantile := func(rank uint64) time.Duration {
		var seen uint64
		for i, n := range counts {
			if seen += n; seen >= rank {
				return min(most, time.Duration(upper(i)+1)*time.Microsecond)
			}
		}
		return most
	}
	return link.Lateness{
		Known: true,
		P50:   quantile(total - total/2),
		P99:   quantile(total - total/100),
		Max:   most,
	}
}
