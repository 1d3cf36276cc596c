package account

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
)

func TestBucketsCoverAllValues(t *testing.T) {
	for i := range buckets - 1 {
		if got := bucket(upper(i)); got != i {
			t.Errorf("%d us, the last of bucket %d, is counted in %d", upper(i), i, got)
		}
		if got := bucket(upper(i) + 1); got != i+1 {
			t.Errorf("%d us, the first of bucket %d, is counted in %d", upper(i)+1, i+1, got)
		}
	}
	if got := bucket(1 << 62); got != buckets-1 {
		t.Errorf("a huge value is counted in bucket %d", got)
	}
}

func TestSummary(t *testing.T) {
	var h Histogram
	if diff := cmp.Diff(link.Lateness{Known: true}, h.Summary()); diff != "" {
		t.Errorf("empty histogram (-want +got):\n%s", diff)
	}
	for i := range 1000 {
		h.Record(int64(time.Duration(i) * time.Microsecond))
	}
	h.Record(-5)
	h.Record(int64(50 * time.Millisecond))
	got := h.Summary()
	within := func(name string, got, want time.Duration) {
		if got < want || got > want+want/16+time.Microsecond {
			t.Errorf("%s is %v, want %v and at most a sixteenth more", name, got, want)
		}
	}
	within("P50", got.P50, 500*time.Microsecond)
	within("P99", got.P99, 990*time.Microsecond)
	if got.Max != 50*time.Millisecond {
		t.Errorf("Max is %v", got.Max)
	}
}
