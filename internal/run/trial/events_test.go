package trial

import (
	"testing"
	"time"

	"skerry/internal/link"
)

// A link is in use according to its traffic in the last seconds, not earlier.
func TestRecentTraffic(t *testing.T) {
	var c recentTraffic
	begin := time.Now()
	if got := c.carriedBy([]string{"a"}); got != nil {
		t.Fatalf("without readings: %+v", got)
	}
	for second := range 20 { // a carries much for ten seconds, then nothing; b 1,000 bytes a second all the time
		a := uint64(min(second, 10)) * 1_000_000
		c.add(begin.Add(time.Duration(second)*time.Second), []link.Stats{
			{ID: "a", AB: link.Counters{Bytes: a}},
			{ID: "b", AB: link.Counters{Bytes: uint64(second) * 600}, BA: link.Counters{Bytes: uint64(second) * 400}},
		})
	}
	if got := c.carriedBy([]string{"a"}); got == nil || got.Rate != 0 || got.InUse() {
		t.Errorf("a, idle for nine seconds: %+v", got)
	}
	if got := c.carriedBy([]string{"b"}); got == nil || got.Rate != 1000 || got.Share != 1 || !got.InUse() {
		t.Errorf("b, 1,000 bytes a second: %+v", got)
	}
	if got := c.carriedBy([]string{"a", "b"}); got == nil || got.Rate != 1000 {
		t.Errorf("both: %+v", got)
	}
}
