package babel

import (
	"testing"
	"time"

	"skerry/internal/lab/overlay"
)

// Whatever the latencies, a way over a few of the longest links costs less than what
// babeld takes for none, and a difference of a tenth is above what it ignores.
func TestCostsFit(t *testing.T) {
	const none, ignored = 65535, 512
	for _, rtt := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 262 * time.Millisecond, 900 * time.Millisecond} {
		s := span([]overlay.Link{{Latency: rtt / 2}, {Latency: rtt / 8}})
		cost := func(d time.Duration) float64 { return hopCost + float64(d)/float64(s)*fullCost }
		if way := 6 * cost(rtt); way >= none {
			t.Errorf("six links of %v cost %.0f", rtt, way)
		}
		if better := cost(rtt) / 10; rtt > 200*time.Millisecond && better < ignored {
			t.Errorf("a tenth of %v is worth %.0f", rtt, better)
		}
	}
}
