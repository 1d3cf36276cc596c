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
	"skerry/internal/evidence/stats"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/internal/record"
	"skerry/internal/topology/flavor"
)

// nodeUse sums the resource use of nodes over the seconds of a measurement.
type nodeUse struct {
	mu  sync.Mutex
	sum map[string]record.NodeSecond
	n   map[string]int
	// memory is the highest total of all nodes in any second, in bytes.
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

// own returns the mean cores and the peak memory of the trial's own processes.
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

// nodes returns the mean use of all nodes except the clients, with their quotas.
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
		out = append(
			out,
			bottleneck.NodeUse{Name: n.Name, Use: bottleneck.Use{Used: s.CPU / seconds, Limit: of}, Throttled: s.Throttled / seconds / of},
		)
	}
	return out
}

// throughputBound returns what limited the throughput of a measurement, over all workloads.
func throughputBound(e experiment.Experiment, l *lab.Lab, m measurement) record.Bound {
	ev, d := sharedEvidence(e, l, m), m.drive
	targets := 0.0
	for _, p := range e.Pools() {
		ev.Threads += p.Workload.Threads
		if targets >= 0 && p.Workload.Target > 0 {
			targets += p.Workload.Target
		} else {
			targets = -1 // a workload without a target
		}
	}
	ev.Target = max(0, targets)
	ev.Throughput, ev.Dropped, ev.LatencyS = d.Throughput(), d.DroppedRate(), d.Latency.Service.Mean().Seconds()
	client := m.fullestClient(e)
	ev.Client = bottleneck.Use{Used: client.Cores, Limit: client.Of}
	ev.RoundTripS, ev.FarthestS = distances(l.Links(), ev.Links, e.ClientNodes(), e.ClientNodes()...)
	if len(m.serverTrips) > 0 {
		ev.RoundTripS, _ = stats.MeanDeviation(m.serverTrips)
	}
	return bottleneck.ExplainThroughput(ev)
}

// sharedEvidence is the evidence that all workloads of a trial have in common.
func sharedEvidence(e experiment.Experiment, l *lab.Lab, m measurement) bottleneck.Evidence {
	machine := m.busiestMachine()
	return bottleneck.Evidence{
		Machine: bottleneck.Use{Used: machine.Cores, Limit: machine.Of},
		Nodes:   m.use.nodes(l, e.ClientNodes()),
		Links:   linkUses(l.Links(), m.traffic, m.drive.Duration.Seconds()),
	}
}

// linkUses returns the throughput of each direction of each link, in bit/s.
func linkUses(links []lab.Link, stats []link.Stats, seconds float64) (out []bottleneck.LinkUse) {
	if seconds <= 0 {
		return nil
	}
	counted := byID(stats)
	rate := func(c link.Counters) float64 { return 8 * float64(c.Bytes) / seconds }
	for _, l := range links {
		s := counted[l.ID]
		out = append(out,
			bottleneck.LinkUse{From: l.A, To: l.B, Use: bottleneck.Use{Used: rate(s.AB), Limit: float64(l.AB.Bandwidth)}},
			bottleneck.LinkUse{From: l.B, To: l.A, Use: bottleneck.Use{Used: rate(s.BA), Limit: float64(l.BA.Bandwidth)}})
	}
	return out
}

// distances returns, in seconds, the mean round trip from the nodes in of over the links they used,
// weighted by traffic, and the longest round trip between other nodes that talked. Round trips of
// operations that pass through other nodes add up.
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
		case there+back > record.KeepAliveShare*all:
			farthest = max(farthest, rtt)
		}
	}
	if sent > 0 {
		mean /= sent
	}
	return mean, farthest
}

// roundTrip returns a percentile, in seconds, of the round trips from the clients to their peers, weighted
// by traffic. With nodes at different distances, the far ones make the tail.
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

// waitSeconds collects, per second of a measurement, what nodes waited for.
type waitSeconds struct {
	members, clients []string

	mu      sync.Mutex
	seconds map[int64]bottleneck.Second
}

func newWaitSeconds(e experiment.Experiment) *waitSeconds {
	return &waitSeconds{members: e.DataNodes(), clients: e.ClientNodes(), seconds: map[int64]bottleneck.Second{}}
}

// addSamples adds the waits of nodes. A client node that is also a member counts as a member.
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

// latencyBound returns what determined the median and the 99th percentile of response times.
func latencyBound(e experiment.Experiment, l *lab.Lab, m measurement) *record.LatencyBound {
	ev := bottleneck.Waiting{Seconds: m.waits, SlowDisk: slowDisk(e, l), Unknown: m.unknownWaits}
	used := linkUses(l.Links(), m.traffic, m.drive.Duration.Seconds())
	_, ev.FarthestS = distances(l.Links(), used, e.ClientNodes(), e.ClientNodes()...)
	find := func(q float64) record.LatencyCause {
		ev.RoundTripS = roundTrip(l.Links(), used, e.ClientNodes(), q)
		if len(m.serverTrips) > 0 {
			ev.RoundTripS = stats.Quantile(q, m.serverTrips)
		}
		p := bottleneck.Percentile{
			Quantile: q, LatencyS: m.drive.Latency.Response.Quantile(q).Seconds(),
			LateS: m.drive.Late.Quantile(q).Seconds(),
		}
		p.QueueS, p.Link = queueDelay(l.Links(), m.traffic, m.drive.Duration, q)
		return bottleneck.ExplainLatency(ev, p)
	}
	return &record.LatencyBound{P50: find(0.5), P99: find(0.99)}
}

// queueDelay returns a percentile of the queueing delay of the link where it is longest, in seconds. Waits
// are assumed to be exponentially distributed around the observed mean, as in bottleneck.ExplainLatency. An
// engine without packet accounts only counts drops of full queues: a link with drops adds a full queue to
// the 99th percentile, and to the median if the link was saturated on average.
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

// slowDisk reports whether the experiment limits the disk of a member.
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

// unknownWaits lists the kinds of waits of members that this machine cannot count.
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
		unknown = append(unknown, "waits of servers for CPUs: not counted by the kernel (CONFIG_SCHED_INFO)")
	}
	if !disk {
		unknown = append(unknown, "waits of servers for the disk: no control group v2, or no pressure accounting in the kernel (psi=1)")
	}
	return unknown, nil
}
