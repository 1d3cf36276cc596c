package trial

import (
	"runtime"
	"sync"

	"skerry/internal/evidence/bound"
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

// nodes are the means of the lab's nodes but the client, of what each has.
func (u *nodeUse) nodes(l *lab.Lab, client string) (out []bound.NodeUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range l.Topology().Nodes {
		if n.Name == client || u.n[n.Name] == 0 {
			continue
		}
		of := float64(runtime.NumCPU())
		if n.CPU > 0 {
			of = min(of, n.CPU)
		}
		s, seconds := u.sum[n.Name], float64(u.n[n.Name])
		out = append(out, bound.NodeUse{Name: n.Name, Use: bound.Use{Used: s.CPU / seconds, Of: of}, Throttled: s.Throttled / seconds / of})
	}
	return out
}

// limitOf says what bound the throughput of a measurement.
func limitOf(e experiment.Experiment, l *lab.Lab, m measurement) record.Bound {
	d := m.drive
	cores, _ := m.machineUse()
	ev := bound.Evidence{
		Threads: e.Workload.Threads, Target: e.Workload.Target, Throughput: d.Throughput(), LatencyS: d.Latency.Service.Mean().Seconds(),
		Client:  bound.Use{Used: d.ClientCPU(), Of: clientCores(e)},
		Machine: bound.Use{Used: min(cores, float64(runtime.NumCPU())), Of: float64(runtime.NumCPU())},
		Nodes:   m.use.nodes(l, e.ClientNode()),
	}
	links := l.Links()
	ev.Links = carried(links, m.traffic, d.Duration.Seconds())
	ev.RoundTripS, ev.FarthestS = distances(links, ev.Links, e.ClientNode())
	return bound.Find(ev)
}

// carried is what each direction of the links carried a second.
func carried(links []lab.Link, stats []link.Stats, seconds float64) (out []bound.LinkUse) {
	if seconds <= 0 {
		return nil
	}
	counted := byID(stats)
	rate := func(c link.Counters) float64 { return 8 * float64(c.Bytes) / seconds }
	for _, l := range links {
		s := counted[l.ID]
		out = append(out,
			bound.LinkUse{From: l.A, To: l.B, Use: bound.Use{Used: rate(s.AB), Of: float64(l.AB.Bandwidth)}},
			bound.LinkUse{From: l.B, To: l.A, Use: bound.Use{Used: rate(s.BA), Of: float64(l.BA.Bandwidth)}})
	}
	return out
}

// keepAlive is the share of all that was carried below which a link has what keeps
// connections alive, and not what operations wait for.
const keepAlive = 0.01

// distances are, in seconds, the client's round trip over the links that it used, by what it sent
// on each, and the longest of a link that nodes talked over. Of operations that go through
// other nodes' links, the round trips add up.
func distances(links []lab.Link, used []bound.LinkUse, client string) (mean, farthest float64) {
	var sent, all float64
	for _, u := range used {
		all += u.Used
	}
	for i, l := range links {
		rtt := (l.AB.Latency + l.BA.Latency).Seconds()
		there, back := used[2*i].Used, used[2*i+1].Used
		switch {
		case l.A == client:
			mean, sent = mean+rtt*there, sent+there
		case l.B == client:
			mean, sent = mean+rtt*back, sent+back
		case there+back > keepAlive*all:
			farthest = max(farthest, rtt)
		}
	}
	if sent > 0 {
		mean /= sent
	}
	return mean, farthest
}

// used takes the seconds of every node in.
func (w *watch) used(rows []record.NodeSecond) {
	w.use.add(rows)
	w.held.sampled(w.cell.Experiment.ClientNode(), rows)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		if row.Node == sample.HostNode {
			w.hostCPUMax = max(w.hostCPUMax, row.CPU)
			w.sampled++
		}
	}
}
