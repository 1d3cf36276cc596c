// Package bottleneck says what limited the throughput of a trial, with the evidence.
//
// By Little's law (J. D. C. Little, "A Proof for the Queuing Formula: L = λW", 1961) the
// operations under way are the throughput times the time that each takes. Threads of a closed loop
// that all wait, while nothing they wait for is used up, wait for distance:
//
//	target reached ─► nearly all of the wait is the client's own round trips: distance
//	  ─► the client's cores are full ─► a link's bandwidth ─► a node's cores ─► the machine's
//	  ─► a target that was missed by operations that found no room behind those without an answer: the database
//	  ─► threads that do not wait: the client ─► round trips between nodes explain the wait: distance
//	  ─► else the database itself
//
// The first that holds is told. Distance comes first where it explains the wait alone: a machine
// that other work keeps busy did not make it longer.
package bottleneck

import (
	"cmp"
	"fmt"
	"slices"

	"skerry/internal/record"
)

// What may bind a trial, as summary.json has it.
const (
	Target    = "target"    // the rate that was asked for was reached
	Client    = "client"    // the client's processors, or its threads were not all waiting
	Machine   = "machine"   // the processors of the machine that emulates all
	Node      = "node"      // the processors of one node
	Bandwidth = "bandwidth" // of one direction of a link
	Distance  = "distance"  // round trips
	Database  = "database"  // none of these: its own waiting
)

const (
	// full is the share of a thing from which on it is used up: queues are long there.
	fullShare = 0.9
	// reached is the share of a target that counts as all of it.
	reachedShare = 0.98
	// explained is the share of the wait that leaves nothing else to look for.
	explainedShare = 0.8
	// waiting is the share of threads that wait where all do, but for starts and ends.
	waitingShare = 0.7
	// hops is how many round trips between nodes an operation may need behind its own: to a
	// coordinator's copies, or to a leader and its followers.
	hops = 2
)

// Use is how much of something was used, on average; Of is 0 where it has no bound.
type Use struct{ Used, Limit float64 }

func (u Use) share() float64 {
	if u.Limit <= 0 {
		return 0
	}
	return u.Used / u.Limit
}

// NodeUse is the cores that a node used, of its quota or else the machine's.
type NodeUse struct {
	Name string
	Use
	// Throttled is for how much of the time its quota held it back, as the kernel adds it up over processors: it can be
	// more than 1.
	Throttled float64
}

// LinkUse is the bit/s that one direction of a link carried.
type LinkUse struct {
	From, To string
	Use
}

// Evidence of a measurement, all of it means over its time.
type Evidence struct {
	Threads    int     // of a closed loop
	Target     float64 // operations a second that were asked for, 0 for as many as it can
	Throughput float64 // operations a second
	Dropped    float64 // operations a second that were due and not sent, as those under way were not answered
	LatencyS   float64 // seconds that an operation took
	// RoundTripS is the round trip from the client to the nodes that it talked with, weighted by
	// what was sent, and FarthestS the longest between nodes that talked with each other.
	RoundTripS, FarthestS float64
	Client, Machine       Use // cores
	Nodes                 []NodeUse
	Links                 []LinkUse
}

// ExplainThroughput says what bound a trial.
func ExplainThroughput(e Evidence) record.Bound {
	b := record.Bound{
		Waiting: e.Throughput * e.LatencyS, LatencyMS: 1e3 * e.LatencyS, RoundTripMS: 1e3 * e.RoundTripS,
		MachineShare: e.Machine.share(), ClientShare: e.Client.share(),
	}
	node, link := e.busiestNode(), e.fullestLink()
	b.NodeShare, b.LinkShare = node.share(), link.share()
	say := func(by, what, format string, args ...any) record.Bound {
		b.By, b.What, b.Text = by, what, fmt.Sprintf(format, args...)
		return b
	}
	distance := func() record.Bound {
		return say(Distance, "", "%d threads wait %s ms each, processors %s busy", e.Threads, formatNumber(b.LatencyMS), formatPercent(b.MachineShare))
	}
	switch {
	case e.Target > 0 && e.Throughput >= reachedShare*e.Target:
		return say(Target, "", "the target of %.4g operations a second was reached", e.Target)
	case DistanceExplains(b) && b.Waiting >= waitingShare*float64(e.Threads):
		return distance()
	case b.ClientShare >= fullShare:
		return say(Client, "", "the client's processors are %s busy", formatPercent(b.ClientShare))
	case b.LinkShare >= fullShare:
		return say(Bandwidth, link.From+"~"+link.To, "the link from %s to %s is %s full", link.From, link.To, formatPercent(b.LinkShare))
	case b.NodeShare >= fullShare || node.Throttled >= 1-fullShare:
		return say(Node, node.Name, "the processors of %s are %s busy, and held back %s of the time", node.Name, formatPercent(b.NodeShare), formatPercent(min(1, node.Throttled)))
	case b.MachineShare >= fullShare:
		return say(Machine, "", "the machine's processors are %s busy", formatPercent(b.MachineShare))
	case e.Dropped > 0 && e.Throughput+e.Dropped >= reachedShare*e.Target:
		return say(Database, "", "%.4g of the %.4g operations a second that were asked for were not sent, as those under way were not answered; processors are %s busy",
			e.Dropped, e.Target, formatPercent(b.MachineShare))
	case b.Waiting < waitingShare*float64(e.Threads):
		return say(Client, "", "of %d threads %.3g wait for an answer at a time", e.Threads, b.Waiting)
	case e.LatencyS <= e.RoundTripS+hops*e.FarthestS:
		return distance()
	}
	return say(Database, "", "%d threads wait %s ms each, round trips take %s of it, processors are %s busy",
		e.Threads, formatNumber(b.LatencyMS), formatNumber(1e3*e.RoundTripS), formatPercent(b.MachineShare))
}

// DistanceExplains tells whether the client's own round trips are nearly all that operations took, so that nothing
// else made them much longer.
func DistanceExplains(b record.Bound) bool {
	return b.LatencyMS > 0 && b.RoundTripMS >= explainedShare*b.LatencyMS
}

func (e Evidence) busiestNode() NodeUse {
	if len(e.Nodes) == 0 {
		return NodeUse{}
	}
	return slices.MaxFunc(e.Nodes, func(a, b NodeUse) int {
		return cmp.Or(cmp.Compare(max(a.share(), 0), max(b.share(), 0)), cmp.Compare(a.Throttled, b.Throttled))
	})
}

func (e Evidence) fullestLink() LinkUse {
	if len(e.Links) == 0 {
		return LinkUse{}
	}
	return slices.MaxFunc(e.Links, func(a, b LinkUse) int { return cmp.Compare(a.share(), b.share()) })
}

func formatPercent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// formatNumber has three digits where there are as many.
func formatNumber(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
