package trial

import (
	"cmp"
	"net"
	"slices"

	"skerry/internal/evidence/recovery"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

// summarise fills in what clients observed, and the events.
func summarise(t *record.Trial, e experiment.Experiment, l *lab.Lab, m measurement, told []record.Event) {
	d := m.drive
	t.Stopped = m.stopped
	t.DurationS, t.WarmupS = d.Duration.Seconds(), d.Warmup.Seconds()
	t.Throughput, t.Goodput = d.Throughput(), d.Goodput()
	t.Interval, t.Batches = m.goodput.HalfWidth, m.goodput.Batches
	t.Retries = d.Retries
	t.Outcomes = record.Outcomes{OK: d.OK, Failed: d.Failed, Unknown: d.Unknown, Dropped: d.Dropped}
	t.Errors = errorCounts(l, d.Errors)
	t.Operations, t.Probes = d.Summaries(), m.probes
	t.Events = recovery.MeasureEvents(told, m.bins, d.Duration.Seconds(), recoveryRules(e))
	if e.Database.Cluster == nil {
		t.Traffic = sumTraffic(l.Links(), m.traffic, e.ClientNodes())
	}
	t.Pools = summarisePools(e, l, m)
	for _, p := range d.Pools { // at most one inserts
		t.Keys = cmp.Or(t.Keys, p.Keys())
	}
}

// keyNotes lists inserted records that requests could not choose.
func keyNotes(d load.Result) (notes []string) {
	for _, p := range d.Pools {
		if why := p.KeyspaceWarning(); why != "" {
			notes = append(notes, why+": set workload.expected_operations")
		}
	}
	return notes
}

func errorCounts(l *lab.Lab, all []load.ErrorCount) (out []record.ErrorCount) {
	for _, x := range all {
		out = append(
			out,
			record.ErrorCount{
				Operation: x.Operation, Outcome: x.Outcome.String(), Class: x.Class, Node: nodeByAddress(l, x.Node),
				Count: x.Count, Example: x.Example,
			},
		)
	}
	return out
}

func loadRecord(l *lab.Lab, d load.Result) *record.Load {
	out := &record.Load{
		Records: d.OK, DurationS: d.Duration.Seconds(), Rate: d.Goodput(), Threads: d.Spec.Threads, Batch: d.Spec.Batch,
		Retries: d.Retries, Errors: errorCounts(l, d.Errors),
	}
	for _, o := range d.Summaries() { // inserts only
		out.Insert = o
	}
	return out
}

func writeFiles(w *record.TrialWriter, m measurement) error {
	if err := m.histograms.write(w); err != nil {
		return recordError{err}
	}
	if err := w.YCSB(m.drive.Report(ycsb.IntervalBoth, ycsb.DefaultPercentiles()).WriteText); err != nil {
		return recordError{err}
	}
	return nil
}

// nodeByAddress returns the node with an address; drivers only know addresses.
func nodeByAddress(l *lab.Lab, address string) string {
	ip, _, err := net.SplitHostPort(address)
	if err != nil {
		ip = address
	}
	if plan, ok := l.Service(); ok {
		if name := plan.NodeOf(address); name != "" {
			return name
		}
	}
	for _, h := range l.Hosts() {
		if h.Addr() == ip {
			return h.Name()
		}
	}
	return address
}

// sumTraffic sums the traffic between each pair of nodes.
func sumTraffic(links []lab.Link, stats []link.Stats, clients []string) *record.Traffic {
	bytes := map[[2]string]int64{}
	counted := byID(stats)
	for _, l := range links {
		bytes[[2]string{l.A, l.B}] += int64(counted[l.ID].AB.Bytes)
		bytes[[2]string{l.B, l.A}] += int64(counted[l.ID].BA.Bytes)
	}
	t := new(record.Traffic)
	for ends, n := range bytes {
		t.Pairs = append(t.Pairs, record.PairTraffic{From: ends[0], To: ends[1], Bytes: n})
		t.TotalBytes += n
		if !slices.Contains(clients, ends[0]) && !slices.Contains(clients, ends[1]) {
			t.DataBytes += n
		}
	}
	slices.SortFunc(t.Pairs, func(a, b record.PairTraffic) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return t
}

func recoveryRules(e experiment.Experiment) recovery.Rules {
	r := e.Recovery
	return recovery.Rules{
		Baseline: r.Baseline.Duration().Seconds(), Goodput: float64(r.Goodput), P99: r.P99,
		Hold: r.Hold.Duration().Seconds(), SLA: us(r.SLA.Duration()),
	}
}
