package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry/internal/record"
)

// Histogram counts durations in nanoseconds, with three significant digits, up to one hour, in the
// buckets of HdrHistogram. The zero value is empty and ready to use.
//
// It stores only the range of buckets in use. One second of latencies takes a few kilobytes instead
// of HdrHistogram's 264, and a merge costs a few microseconds.
type Histogram struct {
	counts []int64 // counts of buckets low, low+1, ...
	low    int
	total  int64
}

const (
	maxValue = int64(time.Hour)
	digits   = 3
)

// Record counts a duration, clamped to the range from 0 to one hour.
func (h *Histogram) Record(d time.Duration) {
	i := bucketIndex(min(max(int64(d), 0), maxValue))
	h.cover(i, i)
	h.counts[i-h.low]++
	h.total++
}

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

// Subtract removes the counts of o, as far as they exist.
func (h *Histogram) Subtract(o Histogram) {
	for i, n := range o.counts {
		if at := o.low + i - h.low; at >= 0 && at < len(h.counts) {
			n = min(n, h.counts[at])
			h.counts[at] -= n
			h.total -= n
		}
	}
}

func (h Histogram) Clone() Histogram {
	var c Histogram
	c.Merge(h)
	return c
}

// Count is the number of recorded durations.
func (h Histogram) Count() int64 { return h.total }

// Quantile returns the upper end of the bucket that a share q, 0 to 1, does not exceed; 0 if empty.
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

// Mean counts each duration as the middle of its bucket; 0 if empty.
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

func middle(i int) int64 {
	from, to := bucketValue(i), bucketValue(i+1)
	return from + (to-from)/2
}

// Min is the lower end of the first bucket; 0 if empty.
func (h Histogram) Min() time.Duration {
	for i, n := range h.counts {
		if n > 0 {
			return time.Duration(bucketValue(h.low + i))
		}
	}
	return 0
}

// Max is the upper end of the last bucket; 0 if empty.
func (h Histogram) Max() time.Duration {
	for i := len(h.counts) - 1; i >= 0; i-- {
		if h.counts[i] > 0 {
			return time.Duration(bucketValue(h.low+i+1) - 1)
		}
	}
	return 0
}

// Summary returns the mean and percentiles in microseconds.
func (h Histogram) Summary() record.Latency {
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	return record.Latency{
		Mean: us(h.Mean()), P50: us(h.Quantile(0.5)), P95: us(h.Quantile(0.95)),
		P99: us(h.Quantile(0.99)), P999: us(h.Quantile(0.999)), Max: us(h.Max()),
	}
}

// Micros returns the histogram in microseconds, for YCSB's text and .hdr logs.
func (h Histogram) Micros() *hdrhistogram.Histogram {
	m := hdrhistogram.New(1, maxValue/int64(time.Microsecond), digits)
	for i, n := range h.counts {
		if n > 0 { // in the range of m, since it is in the range of h
			_ = m.RecordValues(min(middle(h.low+i), maxValue)/int64(time.Microsecond), n)
		}
	}
	return m
}

// MarshalJSON writes HdrHistogram's compressed V2 format in base64, or null if empty.
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
		return nil, fmt.Errorf("encode a histogram: %w", err)
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (h *Histogram) UnmarshalJSON(b []byte) (err error) {
	*h = Histogram{}
	if string(b) == "null" {
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
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
		return fmt.Errorf("%w: unsupported range or precision", errHistogram)
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

// recorder counts durations of one interval in the buckets of a Histogram. Merging and clearing
// touch only the range in use.
type recorder struct {
	counts    []uint32
	low, high int // range of indexes in use; empty if low > high
}

// The bucket layout of HdrHistogram for a unit of 1 ns and 3 digits: 2048 buckets of 1 ns, then
// 1024 buckets for each doubling.
const (
	subBits = 11
	subHalf = 1 << (subBits - 1)
)

// maxBuckets is the number of buckets up to maxValue. HdrHistogram completes the doubling.
const maxBuckets = (42 - subBits + 2) * subHalf

func newRecorder() *recorder {
	return &recorder{counts: make([]uint32, maxBuckets), low: maxBuckets, high: -1}
}

// bucketIndex returns the bucket of v, which must not be negative.
func bucketIndex(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-subBits)
	return shift<<(subBits-1) + int(v>>shift)
}

func bucketValue(i int) int64 {
	shift := max(0, i>>(subBits-1)-1)
	return int64(i-shift<<(subBits-1)) << shift
}

func (r *recorder) add(d time.Duration) {
	i := bucketIndex(min(max(int64(d), 0), maxValue))
	r.counts[i]++
	r.low, r.high = min(r.low, i), max(r.high, i)
}

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
