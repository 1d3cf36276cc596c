package babel

import (
	"fmt"
	"strings"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/lab/overlay"
)

// A link costs babeld its round trip in units, rounded down, plus hopCost. A metric is the sum
// of a path's costs and has 16 bits: 65535 is unreachable. Invariants:
//
//   - The longest of all shortest paths costs at most 1/headroom of the range. Failures and
//     slower links may lengthen it that often before a node counts as unreachable.
//   - One link alone costs at most maxPenalty, so that a path over one very slow link and
//     otherwise no longer than usual has a finite metric.
//   - A path is chosen although another is shorter only if the other is less than one unit a
//     hop shorter: 0.03 ms where the longest path is 300 ms.
//
// The finer the units the better also for another reason: a shorter path can look like a loop
// to babeld, and then babeld requests it only if it is 512 units shorter.
const (
	// metricRange is what round trips may use of the 16 bits; hops have the rest.
	metricRange = 65_000
	headroom    = 6
	maxPenalty  = metricRange / headroom * (headroom - 2)
	// hopCost is the least that babeld accepts. Among equally long paths it prefers the one
	// with fewer hops.
	hopCost = 1
	// rttMin, in ms, is the least that babeld accepts. It costs nothing and is subtracted
	// from every round trip.
	rttMin = 0.001
	// leastSpan keeps a unit at 4.6 us: round trips vary by some 50 us, and babeld
	// announces changes from 384 units.
	leastSpan = 300 * time.Millisecond
	// rttDecay is the weight of a new round trip against those before, in 1/256.
	rttDecay = 128
)

// span is the round trip that would cost metricRange.
func span(links []overlay.Link) time.Duration {
	longest := time.Duration(0)
	for _, row := range overlay.ShortestRTTs(links) {
		for _, rtt := range row {
			longest = max(longest, rtt)
		}
	}
	return max(headroom*longest, leastSpan)
}

// config is babeld's configuration on one node; the span is the same on all of them.
func config(addr string, links []overlay.Link, span time.Duration, o Options) string {
	var b strings.Builder
	b.WriteString("random-id true\nskip-kernel-setup true\nlink-detect true\n")
	// What changes must show at once: no smoothing of costs over time.
	b.WriteString("smoothing-half-life 0\n")
	// Each link that is slower than rttMax costs maxPenalty.
	rttMax := span.Seconds() * 1000 * maxPenalty / metricRange
	fmt.Fprintf(&b, "default type tunnel rxcost %d hello-interval %s update-interval %s enable-timestamps true "+
		"rtt-min %.3f rtt-max %.3f max-rtt-penalty %d rtt-decay %d split-horizon false link-quality false\n",
		hopCost, seconds(o.Hello), seconds(o.Update), rttMin, rttMax, maxPenalty, rttDecay)
	for _, l := range links {
		fmt.Fprintf(&b, "interface %s\n", l.Device)
	}
	fmt.Fprintf(&b, "redistribute ip %s/32 eq 32 local allow\nredistribute local deny\nredistribute deny\n", addr)
	return b.String()
}

// seconds writes an interval in seconds, with the hundredths that babeld reads.
func seconds(d unit.Duration) string {
	return fmt.Sprintf("%.2f", time.Duration(d).Seconds())
}
