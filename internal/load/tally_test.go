package load

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

// oracle is the library's histogram of the same shape.
func oracle() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxValue, digits) }

// same fails the test unless h equals the library's histogram.
func same(t *testing.T, h Histogram, o *hdrhistogram.Histogram) {
	t.Helper()
	if h.Count() != o.TotalCount() || int64(h.Min()) != o.Min() || int64(h.Max()) != o.Max() {
		t.Errorf("%d times from %d to %d, want %d from %d to %d", h.Count(), h.Min(), h.Max(), o.TotalCount(), o.Min(), o.Max())
	}
	if d := math.Abs(float64(h.Mean()) - o.Mean()); d > 1+o.Mean()*1e-9 {
		t.Errorf("mean %v, want %v", float64(h.Mean()), o.Mean())
	}
	for _, q := range []float64{0.0001, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1} {
		if got, want := int64(h.Quantile(q)), o.ValueAtQuantile(100*q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
}

// Recording one by one, through a recorder, and in merged parts gives the same as HdrHistogram.
func TestHistogramMatchesHdrHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var direct, through, merged Histogram
	library, rec := oracle(), newRecorder()
	for round := range 3 {
		var part Histogram
		add := func(d time.Duration) {
			direct.Record(d)
			part.Record(d)
			rec.add(d)
			if err := library.RecordValue(min(max(int64(d), 0), maxValue)); err != nil {
				t.Fatal(err)
			}
		}
		if round == 1 {
			for _, d := range []time.Duration{-5, 0, 1, 1023, 1024, 2047, 2048, 2049, 4095, 4096, time.Hour, time.Hour + 1, 100 * time.Hour} {
				add(d)
			}
		}
		for range 20_000 {
			add(time.Duration(r.Int64N(int64(1) << (10 + r.IntN(10*(round+1))))))
		}
		rec.drain(&through)
		merged.Merge(part)
		same(t, direct, library)
		same(t, through, library)
		same(t, merged, library)
	}
	var empty Histogram
	rec.drain(&empty)
	if empty.Count() != 0 {
		t.Error("a drained recorder is not empty")
	}
	same(t, empty, oracle())
}

func TestBucketsAreInverse(t *testing.T) {
	if last := bucketIndex(maxValue); last >= maxBuckets || bucketValue(maxBuckets) < maxValue {
		t.Fatalf("an hour is in bucket %d of %d", last, maxBuckets)
	}
	for i := range maxBuckets {
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
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	library := oracle()
	for i := range 1000 {
		if err := library.RecordValue(int64(i) * int64(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	same(t, again, library)
	again.Merge(h) // equal to the original
	if again.Count() != 2000 {
		t.Errorf("%d times after merging", again.Count())
	}
	coarse, err := hdrhistogram.New(1, 1000, 1).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`"`+string(coarse)+`"`), &again); !errors.Is(err, errHistogram) {
		t.Errorf("a histogram of another precision: %v", err)
	}
	if b, err := json.Marshal(Histogram{}); err != nil || string(b) != "null" {
		t.Errorf("an empty histogram is %s, %v", b, err)
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
		t.Error("a clone shares the counts of its original")
	}
	m := fast.Micros()
	if m.TotalCount() != 100 || !m.ValuesAreEquivalent(m.Max(), 1_000_000) || !m.ValuesAreEquivalent(m.Min(), 1000) {
		t.Errorf("in microseconds: %d values, %d to %d", m.TotalCount(), m.Min(), m.Max())
	}
}

func FuzzHistogramJSON(f *testing.F) {
	var h Histogram
	h.Record(time.Second)
	b, err := json.Marshal(h)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(strings.Trim(string(b), `"`))
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
		t.Error("the context is not done after its deadline")
	}
	if !errors.Is(c.Err(), context.DeadlineExceeded) || c.overdue(12*time.Second) != time.Second || !c.inFlight() {
		t.Errorf("%v, overdue for %v", c.Err(), c.overdue(12*time.Second))
	}
	if c.end() {
		t.Error("an expired context can be used again")
	}
	if d, ok := c.Deadline(); !ok || d.After(time.Now()) {
		t.Errorf("an expired context has the deadline %v", d)
	}
}

func TestWriteSlots(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var s writeSlots
	for _, at := range []int{7003, 7019, 7991, 8640} {
		s.add(ms(at))
	}
	got := s.since(ms(7001), ms(8001), nil)
	// Slots since 7.00 s: 0, 1 and 99; 8.64 s is beyond the end.
	if diff := cmp.Diff([]uint64{1 | 1<<1, 1 << (99 - 64)}, got); diff != "" {
		t.Error(diff)
	}
	if s != (writeSlots{}) {
		t.Error("drained values are still in the recorder")
	}
	s.add(ms(5115)) // around the end of the ring
	s.add(ms(5125))
	got = s.since(ms(5110), ms(5130), []uint64{0})
	if diff := cmp.Diff([]uint64{1 | 1<<1}, got); diff != "" {
		t.Error(diff)
	}
}
