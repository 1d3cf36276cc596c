package trial

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/evidence/sample"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/record"
)

// nodeUse sums what nodes used over the seconds of a measurement.
type nodeUse struct {
	mu  sync.Mutex
	sum map[string]record.NodeSecond
	n   map[string]int
	// memory is that of all nodes together, at the most.
	memory int64
}

func (u *nodeUse) add(rows []record.NodeSecond) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sum == nil {
		u.sum, u.n = map[string]record.NodeSecond{}, map[string]int{}
	}
	memory := int64(0)
	for _, r := range rows {
		memory += r.Memory
		s := u.sum[r.Node]
		s.CPU, s.Throttled = s.CPU+r.CPU, s.Throttled+r.Throttled
		u.sum[r.Node] = s
		u.n[r.Node]++
	}
	u.memory = max(u.memory, memory)
}

// own is what the trial's own processes used of the machine: cores on average, and memory.
func (u *nodeUse) own() (cores float64, memory int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, s := range u.sum {
		if name != sample.HostNode {
			cores += s.CPU / float64(u.n[name])
		}
	}
	return cores, u.memory
}

// nodes are the means of the lab's nodes but the clients, of what each has.
func (u *nodeUse) nodes(l *lab.Lab, clients []string) (out []bottleneck.NodeUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range l.Topology().Nodes {
		if slices.Contains(clients, n.Name) || u.n[n.Name] == 0 {
			continue
		}
		of := float64(runtime.NumCPU())
		if n.CPU > 0 {
			of = min(of, n.CPU)
		}
		s, seconds := u.sum[n.Name], float64(u.n[n.Name])
		out = append(out, bottleneck.NodeUse{Name: n.Name, Use: bottleneck.Use{Used: s.CPU / seconds, Of: of}, Throttled: s.Throttled / seconds / of})
	}
	return out
}

// limitOf says what bound the throughput of a measurement. Several workloads are taken together;
// each has a bound of its own as well.
func limitOf(e experiment.Experiment, l *lab.Lab, m measurement) record.Bound {
	ev, d := surroundings(e, l, m), m.drive
	targets := 0.0
	for _, p := range e.Pools() {
		ev.Threads += p.Workload.Threads
		if targets >= 0 && p.Workload.Target > 0 {
			targets += p.Workload.Target
		} else {
			targets = -1 // one is as fast as it can be
		}
	}
	ev.Target = max(0, targets)
	ev.Throughput, ev.Dropped, ev.LatencyS = d.Throughput(), d.DroppedRate(), d.Latency.Service.Mean().Seconds()
	client := m.fullestClient(e)
	ev.Client = bottleneck.Use{Used: client.Cores, Of: client.Of}
	ev.RoundTripS, ev.FarthestS = distances(l.Links(), ev.Links, e.ClientNodes(), e.ClientNodes()...)
	return bottleneck.Find(ev)
}

// surroundings is the evidence that all workloads of a trial share.
func surroundings(e experiment.Experiment, l *lab.Lab, m measurement) bottleneck.Evidence {
	machine := m.busiest()
	return bottleneck.Evidence{
		Machine: bottleneck.Use{Used: machine.Cores, Of: machine.Of},
		Nodes:   m.use.nodes(l, e.ClientNodes()),
		Links:   carried(l.Links(), m.traffic, m.drive.Duration.Seconds()),
	}
}

// carried is what each direction of the links carried a second.
func carried(links []lab.Link, stats []link.Stats, seconds float64) (out []bottleneck.LinkUse) {
	if seconds <= 0 {
		return nil
	}
	counted := byID(stats)
	rate := func(c link.Counters) float64 { return 8 * float64(c.Bytes) / seconds }
	for _, l := range links {
		s := counted[l.ID]
		out = append(out,
			bottleneck.LinkUse{From: l.A, To: l.B, Use: bottleneck.Use{Used: rate(s.AB), Of: float64(l.AB.Bandwidth)}},
			bottleneck.LinkUse{From: l.B, To: l.A, Use: bottleneck.Use{Used: rate(s.BA), Of: float64(l.BA.Bandwidth)}})
	}
	return out
}

// distances are, in seconds, the round trip of some of the clients over the links that they used, by what
// they sent on each, and the longest of a link that nodes talked over. Of operations that go through
// other nodes' links, the round trips add up.
func distances(links []lab.Link, used []bottleneck.LinkUse, clients []string, of ...string) (mean, farthest float64) {
	var sent, all float64
	for _, u := range used {
		all += u.Used
	}
	for i, l := range links {
		rtt := l.RTT().Seconds()
		there, back := used[2*i].Used, used[2*i+1].Used
		switch {
		case slices.Contains(of, l.A):
			mean, sent = mean+rtt*there, sent+there
		case slices.Contains(of, l.B):
			mean, sent = mean+rtt*back, sent+back
		case slices.Contains(clients, l.A) || slices.Contains(clients, l.B):
		case there+back > record.KeepAlive*all:
			farthest = max(farthest, rtt)
		}
	}
	if sent > 0 {
		mean /= sent
	}
	return mean, farthest
}

// roundTrip is a percentile, in seconds, of the round trips from the clients to the nodes that they talked with, each
// weighted by what was sent there: where nodes are at different distances, the tail is made by the far ones.
func roundTrip(links []lab.Link, used []bottleneck.LinkUse, clients []string, q float64) float64 {
	type trip struct{ rtt, sent float64 }
	var trips []trip
	var all, below float64
	for i, l := range links {
		sent := used[2*i].Used
		if !slices.Contains(clients, l.A) {
			sent = used[2*i+1].Used
		}
		if slices.Contains(clients, l.A) || slices.Contains(clients, l.B) {
			trips, all = append(trips, trip{l.RTT().Seconds(), sent}), all+sent
		}
	}
	slices.SortFunc(trips, func(a, b trip) int { return cmp.Compare(a.rtt, b.rtt) })
	for _, t := range trips {
		if below += t.sent; below >= q*all && all > 0 {
			return t.rtt
		}
	}
	return 0
}

// used takes the seconds of every node in.
func (w *watch) used(rows []record.NodeSecond) {
	w.use.add(rows)
	w.waits.sampled(rows)
	w.pools.sampled(w.cell.Experiment, rows)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		if row.Node == sample.HostNode {
			w.hostCPUMax = max(w.hostCPUMax, row.CPU)
			w.sampled++
		}
	}
}
