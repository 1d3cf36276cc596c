package babel

import (
	"fmt"
	"strings"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/lab/overlay"
)

// A link costs what its round trip is, in units of which there are 65535 before a way
// counts as none. The finer they are the better: babeld does not ask for a way that it holds
// to be a possible loop, as a shorter way may look, unless that is 512 units shorter.
const (
	// hopCost is what a link costs whatever its latency: of two ways as long, the one of
	// fewer hops is better.
	hopCost = 10
	// rttMin, in ms, costs nothing yet; babeld takes no less.
	rttMin = 1
	// fullCost is what a link of the span or longer costs.
	fullCost = 60_000
	// spanOfLinks is how many of the longest links a way may have.
	spanOfLinks = 6
	// leastSpan keeps the noise of round trips, some 0.05 ms, at a hop or so.
	leastSpan = 300 * time.Millisecond
)

// span is the round trip that costs fullCost.
func span(links []overlay.Link) time.Duration {
	longest := time.Duration(0)
	for _, l := range links {
		longest = max(longest, 2*l.Latency)
	}
	return max(spanOfLinks*longest, leastSpan)
}

// config is babeld's configuration on one node; the span is the same on all of them.
func config(addr string, links []overlay.Link, span time.Duration, o Options) string {
	var b strings.Builder
	b.WriteString("random-id true\nskip-kernel-setup true\nlink-detect true\n")
	// What changes must show at once: no smoothing of costs over time.
	b.WriteString("smoothing-half-life 0\n")
	fmt.Fprintf(&b, "default type tunnel rxcost %d hello-interval %s update-interval %s enable-timestamps true "+
		"rtt-min %d rtt-max %d max-rtt-penalty %d rtt-decay %d split-horizon false link-quality false\n",
		hopCost, seconds(o.Hello), seconds(o.Update), rttMin, span.Milliseconds(), fullCost, rttDecay)
	for _, l := range links {
		fmt.Fprintf(&b, "interface %s\n", l.Device)
	}
	fmt.Fprintf(&b, "redistribute ip %s/32 eq 32 local allow\nredistribute local deny\nredistribute deny\n", addr)
	return b.String()
}

// rttDecay is the weight of a new round-trip time against those before, in 1/256.
const rttDecay = 128

// seconds writes an interval in seconds, with the hundredths that babeld reads.
func seconds(d unit.Duration) string {
	return fmt.Sprintf("%.2f", time.Duration(d).Seconds())
}
