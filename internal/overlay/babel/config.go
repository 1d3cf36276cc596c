package babel

import (
	"fmt"
	"strings"
	"time"

	"skerry/internal/overlay"
)

// Options of babeld.
type Options struct {
	// Hello is how often a node says hello on each link; a neighbour of which nothing
	// was heard for a few of them is given up.
	Hello time.Duration
	// Update is how often a node tells all its routes; changes are told at once.
	Update time.Duration
}

// Defaults detect a link that died silently in about half a second.
func Defaults() Options { return Options{Hello: 150 * time.Millisecond, Update: time.Second} }

const (
	// hopCost is what a link costs whatever its latency, as much as hopCost/costPerMS
	// milliseconds: of two ways as long, the one of fewer hops is better.
	hopCost = 10
	// rttMax is the round trip above which links cost the same, in ms. 1.2 s is more than
	// twice round the Earth in fibre.
	rttMax = 1200
	// costPerMS makes the cost of links a matter of their round-trip times. A path of the
	// costliest links must stay below 65535, which means unreachable: here 5 links.
	costPerMS = 10
	rttMin    = 1
)

// config is babeld's configuration on one node.
func config(addr string, links []overlay.Link, o Options) string {
	var b strings.Builder
	b.WriteString("random-id true\nskip-kernel-setup true\nlink-detect true\n")
	// What changes must show at once: no smoothing of costs over time.
	b.WriteString("smoothing-half-life 0\n")
	fmt.Fprintf(&b, "default type tunnel rxcost %d hello-interval %s update-interval %s enable-timestamps true "+
		"rtt-min %d rtt-max %d max-rtt-penalty %d rtt-decay %d split-horizon false link-quality false\n",
		hopCost, seconds(o.Hello), seconds(o.Update), rttMin, rttMax, (rttMax-rttMin)*costPerMS, rttDecay)
	for _, l := range links {
		fmt.Fprintf(&b, "interface %s\n", l.Device)
	}
	fmt.Fprintf(&b, "redistribute ip %s/32 eq 32 local allow\nredistribute local deny\nredistribute deny\n", addr)
	return b.String()
}

// rttDecay is the weight of a new round-trip time against those before, in 1/256.
const rttDecay = 128

// seconds writes an interval in seconds, with the hundredths that babeld reads.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%.2f", max(d.Seconds(), 0.01))
}
