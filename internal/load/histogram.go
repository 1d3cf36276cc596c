package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts times in nanoseconds, to three significant digits, up to an hour, in
// the buckets of HdrHistogram. The zero value is empty and ready. Two are combined by
// merging; percentiles of percentiles mean nothing.
//
// It holds the range of buckets in use alone: a second of latencies takes some
// kilobytes where HdrHistogram's takes 264, and merging two costs a few microseconds.
type Histogram struct {
	counts []int64 // of buckets low, low+1, ...
	low    int
	total  int64
}

const (
	maxValue = int64(time.Hour)
	digits   = 3
)

// Record counts a time; negative ones count as 0, longer than an hour as an hour.
func (h *Histogram) Record(d time.Duration) {
	i := bucketIndex(min(max(int64(d), 0), maxValue))
	h.cover(i, i)
	h.counts[i-h.low]++
	h.total++
}

// cover makes room for buckets from low to high.
func (h *Histogram) cover(low, high int) {
	if len(h.counts) == 0 {
		h.counts, h.low = make([]int64, high-low+1), low
		return
	}
	old := h.low + len(h.counts) - 1
	if low >= h.low && high <= old {
		return
	}
	low, high = min(low, h.low), max(high, old)
	counts := make([]int64, high-low+1)
	copy(counts[h.low-low:], h.counts)
	h.counts, h.low = counts, low
}

// Merge adds all that o counted.
func (h *Histogram) Merge(o Histogram) {
	if o.total == 0 {
		return
	}
	h.cover(o.low, o.low+len(o.counts)-1)
	to := h.counts[o.low-h.low:]
	for i, n := range o.counts {
		to[i] += n
	}
	h.total += o.total
}

// Subtract takes away what o counted, as far as it is there.
func (h *Histogram) Subtract(o Histogram) {
	for i, n := range o.counts {
		if at := o.low + i - h.low; at >= 0 && at < len(h.counts) {
			n = min(n, h.counts[at])
			h.counts[at] -= n
			h.total -= n
		}
	}
}

// Clone is an independent copy.
func (h Histogram) Clone() Histogram {
	var c Histogram
	c.Merge(h)
	return c
}

// Count is how many times were recorded.
func (h Histogram) Count() int64 { return h.total }

// Quantile is the time that a share q (0..1) did not exceed, as exactly as a bucket is
// wide: its upper end. It is 0 when empty.
func (h Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := int64(1)
	if r := q*float64(h.total) + 0.5; r >= 1 {
		rank = int64(min(r, float64(h.total)))
	}
	for i, n := range h.counts {
		if rank -= n; rank <= 0 {
			return time.Duration(bucketValue(h.low+i+1) - 1)
		}
	}
	return h.Max()
}

// Mean takes each time as the middle of its bucket; 0 when empty.
func (h Histogram) Mean() time.Duration {
	if h.total == 0 {
		return 0
	}
	sum := 0.0
	for i, n := range h.counts {
		sum += float64(n) * float64(middle(h.low+i))
	}
	return time.Duration(sum / float64(h.total))
}

// middle of a bucket.
func middle(i int) int64 {
	from, to := bucketValue(i), bucketValue(i+1)
	return from + (to-from)/2
}

// Min is the lower end of the first bucket; 0 when empty.
func (h Histogram) Min() time.Duration {
	for i, n := range h.counts {
		if n > 0 {
			return time.Duration(bucketValue(h.low + i))
		}
	}
	return 0
}

// Max is the upper end of the last bucket; 0 when empty.
func (h Histogram) Max() time.Duration {
	for i := len(h.counts) - 1; i >= 0; i-- {
		if h.counts[i] > 0 {
			return time.Duration(bucketValue(h.low+i+1) - 1)
		}
	}
	return 0
}

// Micros is the histogram in microseconds, as YCSB's text and its .hdr logs have it.
func (h Histogram) Micros() *hdrhistogram.Histogram {
	m := hdrhistogram.New(1, maxValue/int64(time.Microsecond), digits)
	for i, n := range h.counts {
		if n > 0 { // inside the range of m, as it is inside of h's
			_ = m.RecordValues(min(middle(h.low+i), maxValue)/int64(time.Microsecond), n)
		}
	}
	return m
}

// MarshalJSON writes HdrHistogram's compressed V2 format in base64, or null.
func (h Histogram) MarshalJSON() ([]byte, error) {
	if h.total == 0 {
		return []byte("null"), nil
	}
	counts := make([]int64, h.low+len(h.counts))
	copy(counts[h.low:], h.counts)
	hdr := hdrhistogram.Import(&hdrhistogram.Snapshot{
		LowestTrackableValue: 1, HighestTrackableValue: maxValue, SignificantFigures: digits, Counts: counts,
	})
	b, err := hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encoding a histogram: %w", err)
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Histogram) UnmarshalJSON(b []byte) (err error) {
	*h = Histogram{}
	if string(b) == "null" {
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("decoding a histogram: %w", err)
	}
	defer func() { // the library panics on some damaged input
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errHistogram, p)
		}
	}()
	hdr, err := hdrhistogram.Decode([]byte(s))
	if err != nil {
		return fmt.Errorf("%w: %w", errHistogram, err)
	}
	snapshot := hdr.Export()
	if snapshot.LowestTrackableValue != 1 || snapshot.SignificantFigures != digits || len(snapshot.Counts) > maxBuckets {
		return fmt.Errorf("%w: of another range or precision", errHistogram)
	}
	for i, n := range snapshot.Counts {
		if n > 0 {
			h.cover(i, len(snapshot.Counts)-1)
			break
		}
	}
	if h.total = hdr.TotalCount(); h.total > 0 {
		copy(h.counts, snapshot.Counts[h.low:])
	}
	return nil
}

var errHistogram = errors.New("damaged histogram")

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
