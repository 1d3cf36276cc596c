package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts times in nanoseconds, to three significant digits, up to an hour.
// The zero value is empty and ready. Two are combined by merging; percentiles of
// percentiles mean nothing.
type Histogram struct {
	h *hdrhistogram.Histogram // nil while empty
}

const (
	maxValue = int64(time.Hour)
	digits   = 3
)

// Record counts a time; negative ones count as 0, longer than an hour as an hour.
func (h *Histogram) Record(d time.Duration) { h.add(int64(d), 1) }

func (h *Histogram) add(v, n int64) {
	if h.h == nil {
		h.h = hdrhistogram.New(1, maxValue, digits)
	}
	_ = h.h.RecordValues(min(max(v, 0), maxValue), n) // cannot be out of range
}

// Merge adds all that o counted.
func (h *Histogram) Merge(o Histogram) {
	if o.h == nil {
		return
	}
	if h.h == nil {
		h.h = hdrhistogram.New(1, maxValue, digits)
	}
	h.h.Merge(o.h)
}

// Clone is an independent copy.
func (h Histogram) Clone() Histogram {
	if h.h == nil {
		return h
	}
	return Histogram{h.h.Clone()}
}

// Count is how many times were recorded.
func (h Histogram) Count() int64 {
	if h.h == nil {
		return 0
	}
	return h.h.TotalCount()
}

// Quantile is the time that a share q (0..1) did not exceed; 0 when empty.
func (h Histogram) Quantile(q float64) time.Duration {
	if h.h == nil {
		return 0
	}
	return time.Duration(h.h.ValueAtQuantile(q * 100))
}

// Mean, Min and Max are 0 when empty.
func (h Histogram) Mean() time.Duration {
	if h.h == nil {
		return 0
	}
	return time.Duration(h.h.Mean())
}

// Min is the smallest time recorded.
func (h Histogram) Min() time.Duration {
	if h.h == nil {
		return 0
	}
	return time.Duration(h.h.Min())
}

// Max is the largest time recorded.
func (h Histogram) Max() time.Duration {
	if h.h == nil {
		return 0
	}
	return time.Duration(h.h.Max())
}

// Micros is the histogram in microseconds, as YCSB's text and its .hdr logs have it.
func (h Histogram) Micros() *hdrhistogram.Histogram {
	m := hdrhistogram.New(1, maxValue/int64(time.Microsecond), digits)
	if h.h == nil {
		return m
	}
	for _, b := range h.h.Distribution() {
		if b.Count > 0 {
			mid := b.From + (b.To-b.From)/2
			_ = m.RecordValues(mid/int64(time.Microsecond), b.Count)
		}
	}
	return m
}

// MarshalJSON writes HdrHistogram's compressed V2 format in base64, or null.
func (h Histogram) MarshalJSON() ([]byte, error) {
	if h.h == nil {
		return []byte("null"), nil
	}
	b, err := h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encoding a histogram: %w", err)
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Histogram) UnmarshalJSON(b []byte) (err error) {
	h.h = nil
	if string(b) == "null" {
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("decoding a histogram: %w", err)
	}
	defer func() { // the library panics on some damaged input
		if p := recover(); p != nil {
			h.h, err = nil, errors.Join(errHistogram, fmt.Errorf("%v", p))
		}
	}()
	if h.h, err = hdrhistogram.Decode([]byte(s)); err != nil {
		return fmt.Errorf("%w: %w", errHistogram, err)
	}
	return nil
}

var errHistogram = errors.New("damaged histogram")
