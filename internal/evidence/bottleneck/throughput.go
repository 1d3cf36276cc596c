// Package bottleneck explains what limited the throughput of a trial and what determined its response times.
//
// By Little's law (J. D. C. Little, "A Proof for the Queuing Formula: L = λW", 1961) the number of concurrent
// operations is the throughput times the latency. If all threads of a closed loop wait while no resource is
// saturated, they wait for distance. The first rule that applies is reported:
//
//	target reached ─► nearly all of the wait is the client's own round trips: distance
//	  ─► the client's cores are saturated ─► a link's bandwidth ─► a node's cores ─► the machine's cores
//	  ─► the target was missed because earlier operations were unanswered: the database
//	  ─► threads that do not wait: the client ─► round trips between nodes explain the wait: distance
//	  ─► otherwise the database itself
//
// Distance comes first if it explains the wait alone: other work on the machine did not prolong it.
package bottleneck

import (
	"cmp"
	"fmt"
	"slices"

	"skerry/internal/record"
)

const (
	Target    = "target"    // target rate reached
	Client    = "client"    // client CPU, or threads that do not wait
	Machine   = "machine"   // CPU of the emulating machine
	Node      = "node"      // CPU of one node
	Bandwidth = "bandwidth" // one direction of a link
	Distance  = "distance"  // round trips
	Database  = "database"  // internal waits
)

const (
	// fullShare is the utilisation above which a resource counts as saturated: queues are long there.
	fullShare = 0.9
	// reachedShare is the share of a target that counts as reached.
	reachedShare = 0.98
	// explainedShare is the share of the wait that counts as all of it.
	explainedShare = 0.8
	// waitingShare is the share of waiting threads that counts as all, apart from starts and ends.
	waitingShare = 0.7
	// hops is the number of round trips between nodes that an operation may need after its own: to a coordinator's
	// replicas, or to a leader and its followers.
	hops = 2
)

// Use is the mean use of a resource; Limit is 0 without a limit.
type Use struct{ Used, Limit float64 }

func (u Use) share() float64 {
	if u.Limit <= 0 {
		return 0
	}
	return u.Used / u.Limit
}

// NodeUse is the cores that a node used, out of its quota or the machine's cores.
type NodeUse struct {
	Name string
	Use
	// Throttled is the share of time in which the quota stopped the node, summed over processors, so it may exceed 1.
	Throttled float64
}

// LinkUse is the bit/s in one direction of a link.
type LinkUse struct {
	From, To string
	Use
}

// Evidence is the means over a measurement.
type Evidence struct {
	Threads    int     // of a closed loop
	Target     float64 // operations per second, 0 for no target
	Throughput float64 // operations per second
	Dropped    float64 // operations per second not sent because earlier ones were unanswered
	LatencyS   float64 // mean latency in seconds
	// RoundTripS is the round trip from the client to its nodes, weighted by traffic. FarthestS is the longest round
	// trip between nodes that communicated.
	RoundTripS, FarthestS float64
	Client, Machine       Use // cores
	Nodes                 []NodeUse
	Links                 []LinkUse
}

// ExplainThroughput returns what limited the throughput of a trial.
func ExplainThroughput(e Evidence) record.Bound {
	b := record.Bound{
		Waiting: e.Throughput * e.LatencyS, LatencyMS: 1e3 * e.LatencyS, RoundTripMS: 1e3 * e.RoundTripS,
		MachineShare: e.Machine.share(), ClientShare: e.Client.share(),
	}
	node, link := e.busiestNode(), e.fullestLink()
	b.NodeShare, b.LinkShare = node.share(), link.share()
	report := func(by, what, format string, args ...any) record.Bound {
		b.By, b.What, b.Text = by, what, fmt.Sprintf(format, args...)
		return b
	}
	distance := func() record.Bound {
		return report(Distance, "", "%d threads wait %s ms each, CPU utilisation %s", e.Threads, formatNumber(b.LatencyMS),
			formatPercent(b.MachineShare))
	}
	switch {
	case e.Target > 0 && e.Throughput >= reachedShare*e.Target:
		return report(Target, "", "target of %.4g operations per second reached", e.Target)
	case DistanceExplains(b) && b.Waiting >= waitingShare*float64(e.Threads):
		return distance()
	case b.ClientShare >= fullShare:
		return report(Client, "", "CPU utilisation of the client %s", formatPercent(b.ClientShare))
	case b.LinkShare >= fullShare:
		return report(Bandwidth, link.From+"~"+link.To, "utilisation of the link from %s to %s is %s", link.From, link.To,
			formatPercent(b.LinkShare))
	case b.NodeShare >= fullShare || node.Throttled >= 1-fullShare:
		return report(Node, node.Name, "CPU utilisation of %s is %s, throttled %s of the time", node.Name, formatPercent(b.NodeShare),
			formatPercent(min(1, node.Throttled)))
	case b.MachineShare >= fullShare:
		return report(Machine, "", "CPU utilisation of the machine %s", formatPercent(b.MachineShare))
	case e.Dropped > 0 && e.Throughput+e.Dropped >= reachedShare*e.Target:
		return report(Database, "", "%.4g of the %.4g operations per second of the target were not sent, since earlier ones were unanswered; CPU "+
			"utilisation %s",
			e.Dropped, e.Target, formatPercent(b.MachineShare))
	case b.Waiting < waitingShare*float64(e.Threads):
		return report(Client, "", "of %d threads, on average %.3g wait for an answer", e.Threads, b.Waiting)
	case e.LatencyS <= e.RoundTripS+hops*e.FarthestS:
		return distance()
	}
	return report(Database, "", "%d threads wait %s ms each; round trips take %s; CPU utilisation %s",
		e.Threads, formatNumber(b.LatencyMS), formatNumber(1e3*e.RoundTripS), formatPercent(b.MachineShare))
}

// DistanceExplains reports whether the client's own round trips make up nearly all of the latency.
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

func formatNumber(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
