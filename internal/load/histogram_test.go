package load

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A recorder's buckets are those of HdrHistogram: recording through it or directly
// gives the same histogram.
func TestRecorderIsAHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var direct, through Histogram
	rec := newRecorder()
	add := func(d time.Duration) {
		direct.Record(d)
		rec.add(d)
	}
	for range 2 { // drained and used again
		for _, d := range []time.Duration{-5, 0, 1, 1023, 1024, 2047, 2048, 2049, 4095, 4096, time.Hour, time.Hour + 1, 100 * time.Hour} {
			add(d)
		}
		for range 20_000 {
			add(time.Duration(r.Int64N(int64(1) << r.IntN(43))))
		}
		rec.drain(&through)
		if direct.Count() != through.Count() || !direct.h.Equals(through.h) {
			t.Fatal("the histograms differ")
		}
	}
	var empty Histogram
	rec.drain(&empty)
	if empty.Count() != 0 {
		t.Error("a drained recorder is not empty")
	}
}

func TestBucketsAreInverse(t *testing.T) {
	for i := range recorderLen {
		if v := bucketValue(i); bucketIndex(v) != i || i > 0 && bucketIndex(v-1) != i-1 {
			t.Fatalf("bucket %d begins at %d, which is in bucket %d", i, v, bucketIndex(v))
		}
	}
}

func TestHistogramJSON(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Record(time.Duration(i) * time.Millisecond)
	}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var again Histogram
	if err := json.Unmarshal(b, &again); err != nil || !again.h.Equals(h.h) {
		t.Errorf("came back different: %v", err)
	}
	if b, err := json.Marshal(Histogram{}); err != nil || string(b) != "null" {
		t.Errorf("an empty one is %s, %v", b, err)
	}
	for _, damaged := range []string{`""`, `"HIST"`, `5`, `"` + string(b[1:20]) + `"`} {
		var h Histogram
		if err := json.Unmarshal([]byte(damaged), &h); err == nil {
			t.Errorf("%s is a histogram", damaged)
		}
	}
}

func TestHistogramMergesNotAverages(t *testing.T) {
	var fast, slow Histogram
	for range 99 {
		fast.Record(time.Millisecond)
	}
	slow.Record(time.Second)
	fast.Merge(slow)
	fast.Merge(Histogram{})
	if p := fast.Quantile(0.5); p < time.Millisecond || p > 1001*time.Microsecond {
		t.Errorf("median %v, want 1ms", p)
	}
	if m := fast.Max(); m < time.Second || fast.Count() != 100 {
		t.Errorf("max %v of %d", m, fast.Count())
	}
	c := fast.Clone()
	c.Record(time.Hour)
	if fast.Count() != 100 {
		t.Error("a clone shares its counts")
	}
	m := fast.Micros()
	if m.TotalCount() != 100 || !m.ValuesAreEquivalent(m.Max(), 1_000_000) || !m.ValuesAreEquivalent(m.Min(), 1000) {
		t.Errorf("in microseconds: %d values, %d to %d", m.TotalCount(), m.Min(), m.Max())
	}
}

func FuzzHistogramJSON(f *testing.F) {
	var h Histogram
	h.Record(time.Second)
	b, err := h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("HISTFAAAAB4")
	f.Fuzz(func(_ *testing.T, s string) {
		text, err := json.Marshal(s)
		if err != nil {
			return
		}
		var h Histogram
		_ = json.Unmarshal(text, &h) // must not panic
	})
}

func TestOpContext(t *testing.T) {
	base := time.Now()
	c := newOpContext(context.Background(), base)
	c.begin(0, 5*time.Second)
	if d, ok := c.Deadline(); !ok || !d.Equal(base.Add(5*time.Second)) || !c.inFlight() {
		t.Errorf("deadline %v, %v", d.Sub(base), ok)
	}
	c.expire(4 * time.Second)
	if c.Err() != nil || !c.end() || c.inFlight() {
		t.Error("expired before its deadline")
	}
	c.expire(9 * time.Second) // between operations
	c.begin(0, 10*time.Second)
	c.expire(11 * time.Second)
	select {
	case <-c.Done():
	default:
		t.Error("not done after its deadline")
	}
	if !errors.Is(c.Err(), context.DeadlineExceeded) || c.overdue(12*time.Second) != time.Second || !c.inFlight() {
		t.Errorf("%v, overdue for %v", c.Err(), c.overdue(12*time.Second))
	}
	if c.end() {
		t.Error("an expired context can be used again")
	}
	if d, ok := c.Deadline(); !ok || d.After(time.Now()) {
		t.Errorf("the deadline of an expired one is %v", d)
	}
}
