package trial

import (
	"math"
	"slices"
	"sync"
	"time"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/internal/record"
	"skerry/internal/topology/flavor"
)

// waits are what was waited for in each second of a measurement.
type waits struct {
	members, clients []string

	mu      sync.Mutex
	seconds map[int64]bottleneck.Second
}

func newWaits(e experiment.Experiment) *waits {
	return &waits{members: e.DataNodes(), clients: e.ClientNodes(), seconds: map[int64]bottleneck.Second{}}
}

// sampled adds what nodes waited for. A client's node that is a member too counts as a member.
func (w *waits) sampled(rows []record.NodeSecond) {
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

// interval adds the operations of a second.
func (w *waits) interval(i load.Interval) {
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

func (w *waits) all() (out []bottleneck.Second) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seconds {
		out = append(out, s)
	}
	return out
}

// madeBy says what made the response times of a measurement.
func madeBy(e experiment.Experiment, l *lab.Lab, m measurement) *record.LatencyBound {
	ev := bottleneck.Waiting{Seconds: m.waits, SlowDisk: slowDisk(e, l), Unknown: m.unwaited}
	used := carried(l.Links(), m.traffic, m.drive.Duration.Seconds())
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

// unwaited lists what members may have waited for and this machine does not count.
func unwaited(hosts []host.Host, members []string) (unknown []string, err error) {
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
