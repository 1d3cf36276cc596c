package trial

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/evidence/sample"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/internal/record"
	"skerry/internal/topology/flavor"
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

// throughputBound says what bound the throughput of a measurement. Several workloads are taken together;
// each has a bound of its own as well.
func throughputBound(e experiment.Experiment, l *lab.Lab, m measurement) record.Bound {
	ev, d := sharedEvidence(e, l, m), m.drive
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

// sharedEvidence is the evidence that all workloads of a trial share.
func sharedEvidence(e experiment.Experiment, l *lab.Lab, m measurement) bottleneck.Evidence {
	machine := m.busiestMachine()
	return bottleneck.Evidence{
		Machine: bottleneck.Use{Used: machine.Cores, Of: machine.Of},
		Nodes:   m.use.nodes(l, e.ClientNodes()),
		Links:   linkUses(l.Links(), m.traffic, m.drive.Duration.Seconds()),
	}
}

// linkUses is what each direction of the links carried a second.
func linkUses(links []lab.Link, stats []link.Stats, seconds float64) (out []bottleneck.LinkUse) {
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

// addSamples takes the seconds of every node in.
func (w *watch) addSamples(rows []record.NodeSecond) {
	w.use.add(rows)
	w.waits.addSamples(rows)
	w.pools.addSamples(w.cell.Experiment, rows)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		if row.Node == sample.HostNode {
			w.hostCPUMax = max(w.hostCPUMax, row.CPU)
			w.sampled++
		}
	}
}

// waitSeconds are what was waited for in each second of a measurement.
type waitSeconds struct {
	members, clients []string

	mu      sync.Mutex
	seconds map[int64]bottleneck.Second
}

func newWaitSeconds(e experiment.Experiment) *waitSeconds {
	return &waitSeconds{members: e.DataNodes(), clients: e.ClientNodes(), seconds: map[int64]bottleneck.Second{}}
}

// addSamples adds what nodes waited for. A client's node that is a member too counts as a member.
func (w *waitSeconds) addSamples(rows []record.NodeSecond) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range rows {
		s := w.seconds[r.T]
		processor := min(1, max(0, r.ProcessorWait-r.Throttled))
		switch {
		case slices.Contains(w.members, r.Node):
			s.Servers, s.Quota, s.Disk = max(s.Servers, processor), max(s.Quota, min(1, r.Throttled)), max(s.Disk, min(1, r.DiskWait))
		case slices.Contains(w.clients, r.Node):
			s.Client = max(s.Client, processor)
		default:
			continue
		}
		w.seconds[r.T] = s
	}
}

// addInterval adds the operations of a second.
func (w *waitSeconds) addInterval(i load.Interval) {
	if i.T < 0 || i.Length <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.seconds[i.T]
	s.Operations += float64(i.Ended()) / i.Length.Seconds()
	s.LatencyS = i.Latency.Response.Mean().Seconds()
	w.seconds[i.T] = s
}

func (w *waitSeconds) all() (out []bottleneck.Second) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seconds {
		out = append(out, s)
	}
	return out
}

// latencyBound says what made the response times of a measurement.
func latencyBound(e experiment.Experiment, l *lab.Lab, m measurement) *record.LatencyBound {
	ev := bottleneck.Waiting{Seconds: m.waits, SlowDisk: slowDisk(e, l), Unknown: m.unknownWaits}
	used := linkUses(l.Links(), m.traffic, m.drive.Duration.Seconds())
	_, ev.FarthestS = distances(l.Links(), used, e.ClientNodes(), e.ClientNodes()...)
	find := func(q float64) record.LatencyCause {
		ev.RoundTripS = roundTrip(l.Links(), used, e.ClientNodes(), q)
		p := bottleneck.Percentile{Quantile: q, LatencyS: m.drive.Latency.Response.Quantile(q).Seconds(), LateS: m.drive.Late.Quantile(q).Seconds()}
		p.QueueS, p.Link = queueDelay(l.Links(), m.traffic, m.drive.Duration, q)
		return bottleneck.FindLatency(ev, p)
	}
	return &record.LatencyBound{P50: find(0.5), P99: find(0.99)}
}

// queueDelay is a percentile of the time that packets waited in the queue of a link, of the link where it is
// longest. The mean is what the engine observed, and waits count as exponentially distributed around it, as all
// waits of bound.FindLatency. An engine that does not see packets counts what a full queue dropped: a link whose
// queue was full at times made the 99th percentile wait for all of its queue, and one that was full on average
// the median too. Its other links count as 0.
func queueDelay(links []lab.Link, counted []link.Stats, measured time.Duration, q float64) (longest float64, of string) {
	stats := byID(counted)
	for _, l := range links {
		s := stats[l.ID]
		for _, d := range []struct {
			from, to string
			quality  link.Quality
			counters link.Counters
		}{{l.A, l.B, l.AB, s.AB}, {l.B, l.A, l.BA, s.BA}} {
			if a := d.counters.Account; a.Known {
				if wait := a.Queued.Seconds() / float64(max(1, a.Packets)) * math.Log(1/(1-q)); wait > longest {
					longest, of = wait, d.from+"~"+d.to
				}
				continue
			}
			rate := float64(d.quality.Bandwidth)
			if rate <= 0 || measured <= 0 || d.counters.DroppedQueue == 0 {
				continue
			}
			share := 8 * float64(d.counters.Bytes) / measured.Seconds() / rate
			if q < 0.9 && share < 0.9 {
				continue
			}
			size := d.quality.Queue
			if size == 0 {
				size = link.DefaultQueue(d.quality.Bandwidth, d.quality.Latency)
			}
			if wait := 8 * float64(size) / rate; wait > longest {
				longest, of = wait, d.from+"~"+d.to
			}
		}
	}
	return longest, of
}

// slowDisk tells whether the experiment bounds the disk of a member.
func slowDisk(e experiment.Experiment, l *lab.Lab) bool {
	for _, n := range l.Topology().Nodes {
		if n.Flavor != nil && n.Flavor.Disk != (flavor.Disk{}) {
			return true
		}
	}
	for _, x := range e.Events {
		if x.NeedsDisks() {
			return true
		}
	}
	return false
}

// unknownWaits lists what members may have waited for and this machine does not count.
func unknownWaits(hosts []host.Host, members []string) (unknown []string, err error) {
	processor, disk := true, true
	for _, h := range hosts {
		if !slices.Contains(members, h.Name()) {
			continue
		}
		u, err := h.Usage()
		if err != nil {
			return nil, err
		}
		processor, disk = processor && u.Waits.ProcessorKnown, disk && u.Waits.DiskKnown
	}
	if !processor {
		unknown = append(unknown, "servers' wait for processors: the kernel does not count it (CONFIG_SCHED_INFO)")
	}
	if !disk {
		unknown = append(unknown, "servers' wait for the disk: there is no control group of version 2, or the kernel counts no pressure (psi=1)")
	}
	return unknown, nil
}
