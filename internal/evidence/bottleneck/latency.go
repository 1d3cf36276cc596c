package bottleneck

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"skerry/internal/record"
)

const (
	Disk  = "disk"  // members waited for the disk
	Queue = "queue" // packets waited in a link's queue
)

// causeShare is the share of the time beyond round trips from which on one wait counts as the cause.
const causeShare = 0.5

// Second is the waits in one second of a measurement. Waits are in seconds, at most 1, of the member that waited
// longest.
type Second struct {
	Operations float64 // completed per second
	LatencyS   float64 // their mean
	Servers    float64 // wait for a processor of the machine
	Quota      float64 // wait for the node's CPU quota
	Client     float64 // wait of the driver for a processor
	Disk       float64
}

// Percentile is one percentile of a measurement.
type Percentile struct {
	Quantile float64
	LatencyS float64 // response time
	LateS    float64 // the same percentile of the driver's lateness
	QueueS   float64 // the same percentile of the time in the longest queue
	Link     string  // link of this queue, FROM~TO
}

// Waiting is the evidence for the causes of response times.
type Waiting struct {
	RoundTripS, FarthestS float64 // as in Evidence
	Seconds               []Second
	// SlowDisk is true if the experiment limits the disk: then waiting for it is a property of the experiment and not
	// of the machine.
	SlowDisk bool
	// Unknown lists what could not be measured, with the reason.
	Unknown []string
}

type wait struct {
	by, what, text string
	ms             float64
}

// ExplainLatency returns the cause of a percentile of the response time:
//
//	nearly all of it is round trips (as for the throughput) ─► distance
//	  ─► of the rest, the longest wait if it is at least half: servers for a processor, for their quota or for the
//	  disk, the driver for a processor, packets in a link's queue
//	  ─► otherwise the database itself
//
// A wait of u seconds in a second delays the concurrent operations: by Little's law u x latency for each operation, and
// at least u / operations if fewer than one is concurrent on average. That is the mean wait of the second's operations.
// Single waits are not observed: they may be equal, as behind a disk that is always busy, or exponentially distributed,
// as in an intermittent queue. The part of a wait is the percentile over all operations under the assumption that gives
// the larger value: equal waits for the median, exponential waits for the tail.
func ExplainLatency(e Waiting, p Percentile) record.LatencyCause {
	c := record.LatencyCause{LatencyMS: 1e3 * p.LatencyS, Unknown: e.Unknown}
	c.RoundTripMS = 1e3 * min(p.LatencyS, max(e.RoundTripS, min(p.LatencyS, e.RoundTripS+hops*e.FarthestS)))
	part := func(of func(Second) float64) float64 { return 1e3 * e.waitQuantile(p.Quantile, of) }
	c.ServersMS = part(func(s Second) float64 { return s.Servers })
	c.QuotaMS = part(func(s Second) float64 { return s.Quota })
	c.DiskMS = part(func(s Second) float64 { return s.Disk })
	c.ClientMS = max(1e3*p.LateS, part(func(s Second) float64 { return s.Client }))
	c.QueueMS = 1e3 * p.QueueS
	waits := []wait{
		{Machine, "", "servers waited for a processor", c.ServersMS}, {Disk, "", "servers waited for the disk", c.DiskMS},
		{Client, "", "the driver waited for a processor", c.ClientMS}, {Queue, p.Link, "packets waited in the queue of " + p.Link, c.QueueMS},
		{Node, "", "servers waited for their quota", c.QuotaMS},
	}
	longest := slices.MaxFunc(waits, func(a, b wait) int { return cmp.Compare(a.ms, b.ms) })
	rest := c.LatencyMS - c.RoundTripMS
	switch {
	case e.RoundTripS >= explainedShare*p.LatencyS || rest <= 0:
		c.By = Distance
	case longest.ms >= causeShare*rest:
		c.By, c.What = longest.by, longest.what
		c.OfMachine = c.By == Machine || c.By == Client || c.By == Disk && !e.SlowDisk
	default:
		c.By = Database
	}
	texts := []string{fmt.Sprintf("%s ms: round trips %s", formatNumber(c.LatencyMS), formatNumber(c.RoundTripMS))}
	for _, w := range waits {
		if w.ms >= causeShare*causeShare*rest && rest > 0 {
			texts = append(texts, fmt.Sprintf("%s %s", w.text, formatNumber(min(w.ms, rest))))
		}
	}
	c.Text = strings.Join(texts, ", ")
	return c
}

// waitQuantile is the q-quantile, in seconds, of the waits of all operations.
func (e Waiting) waitQuantile(q float64, of func(Second) float64) float64 {
	seconds := slices.DeleteFunc(slices.Clone(e.Seconds), func(s Second) bool { return s.Operations == 0 })
	mean := func(s Second) float64 { return of(s) * max(1/s.Operations, s.LatencyS) }
	slices.SortFunc(seconds, func(a, b Second) int { return cmp.Compare(mean(a), mean(b)) })
	return max(equalWaitQuantile(seconds, q, mean), exponentialWaitQuantile(seconds, q, mean))
}

// equalWaitQuantile is the q-quantile if all operations of a second wait equally long. The seconds must be sorted by
// mean.
func equalWaitQuantile(seconds []Second, q float64, mean func(Second) float64) float64 {
	all, below := 0.0, 0.0
	for _, s := range seconds {
		all += s.Operations
	}
	for _, s := range seconds {
		if below += s.Operations; below >= q*all {
			return mean(s)
		}
	}
	return 0
}

// exponentialWaitQuantile is the q-quantile of a mixture of exponential distributions, one per second.
func exponentialWaitQuantile(seconds []Second, q float64, mean func(Second) float64) float64 {
	all, most := 0.0, 0.0
	for _, s := range seconds {
		all, most = all+s.Operations, max(most, mean(s))
	}
	if most == 0 {
		return 0
	}
	// The quantile lies between 0 and that of the longest mean.
	low, high := 0.0, most*math.Log(1/(1-q))
	for range 50 {
		x, above := (low+high)/2, 0.0
		for _, s := range seconds {
			if mean(s) > 0 {
				above += s.Operations * math.Exp(-x/mean(s))
			}
		}
		if above > (1-q)*all {
			low = x
		} else {
			high = x
		}
	}
	return high
}
