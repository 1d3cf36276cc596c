package trial

import (
	"cmp"
	"fmt"
	"net"
	"runtime"
	"slices"

	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/record"
	"skerry/internal/recovery"
	"skerry/internal/ycsb"
)

// summarise fills in the trial's result and writes its files.
func (r *run) summarise(m measurement, f record.Fidelity) error {
	t, d := r.result, m.drive
	t.Stopped = m.stopped
	t.DurationS, t.WarmupS = d.Duration.Seconds(), d.Warmup.Seconds()
	t.Throughput, t.Goodput = d.Throughput(), d.Goodput()
	t.Interval, t.Batches = m.goodput.HalfWidth, m.goodput.Batches
	t.Retries = d.Retries
	t.Outcomes = record.Outcomes{OK: d.OK, Failed: d.Failed, Unknown: d.Unknown, Dropped: d.Dropped}
	for _, e := range d.Errors {
		t.Errors = append(t.Errors, record.ErrorCount{Operation: e.Operation, Outcome: e.Outcome.String(), Class: e.Class, Node: r.nodeOf(e.Node), Count: e.Count, Example: e.Example})
	}
	t.Operations, t.Probes = operations(d), m.probes
	t.Events = recovery.Happenings(r.Writer.Events(), m.bins, d.Duration.Seconds(), r.rules())
	t.Traffic = r.trafficOf(m.traffic)
	t.Fidelity = r.fidelityOf(m, f)
	t.Verdict = judge(t.Fidelity, r.clientCores(), r.limits())
	if faults := append(eventFaults(m.events), byHand(m.events)...); len(faults) > 0 {
		t.Verdict.State = record.Suspect
		t.Verdict.Reasons = append(t.Verdict.Reasons, faults...)
	}
	if d.Stuck > 0 {
		t.Verdict.State = record.Suspect
		t.Verdict.Reasons = append(t.Verdict.Reasons, fmt.Sprintf("%d operations outlived their timeout and were left behind", d.Stuck))
	}
	return r.writeFiles(m)
}

// operations are those of a drive by their kind.
func operations(d load.Result) map[string]record.OperationSummary {
	all := map[string]record.OperationSummary{}
	for name, o := range d.Operations {
		all[name] = record.OperationSummary{
			Count: o.OK, Failed: o.Failed + o.Unknown,
			Service: latency(o.Latency.Service), Response: latency(o.Latency.Response),
		}
	}
	return all
}

func (r *run) writeFiles(m measurement) error {
	if err := m.histograms.write(r.Writer); err != nil {
		return recordError{err}
	}
	if err := r.Writer.YCSB(m.drive.Report(ycsb.IntervalBoth, ycsb.DefaultPercentiles()).WriteText); err != nil {
		return recordError{err}
	}
	return nil
}

// nodeOf names the node with an address; drivers know only addresses.
func (r *run) nodeOf(address string) string {
	ip, _, err := net.SplitHostPort(address)
	if err != nil {
		ip = address
	}
	if plan, ok := r.lab.Service(); ok {
		if name := plan.NodeOf(address); name != "" {
			return name
		}
	}
	for _, h := range r.lab.Hosts() {
		if h.Addr() == ip {
			return h.Name()
		}
	}
	return address
}

func latency(h load.Histogram) record.Latency {
	return record.Latency{
		Mean: us(h.Mean()), P50: us(h.Quantile(0.5)), P95: us(h.Quantile(0.95)),
		P99: us(h.Quantile(0.99)), P999: us(h.Quantile(0.999)), Max: us(h.Max()),
	}
}

// trafficOf sums the links between each two nodes.
func (r *run) trafficOf(links []link.Stats) record.Traffic {
	client := r.Cell.Experiment.ClientNode()
	bytes := map[[2]string]int64{}
	counted := byID(links)
	for _, l := range r.lab.Links() {
		bytes[[2]string{l.A, l.B}] += int64(counted[l.ID].AB.Bytes)
		bytes[[2]string{l.B, l.A}] += int64(counted[l.ID].BA.Bytes)
	}
	var t record.Traffic
	for ends, n := range bytes {
		t.Pairs = append(t.Pairs, record.PairTraffic{From: ends[0], To: ends[1], Bytes: n})
		t.TotalBytes += n
		if ends[0] != client && ends[1] != client {
			t.DataBytes += n
		}
	}
	slices.SortFunc(t.Pairs, func(a, b record.PairTraffic) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return t
}

// fidelityOf adds to what was probed what was seen while the workload ran.
func (r *run) fidelityOf(m measurement, f record.Fidelity) record.Fidelity {
	f.EmulatorLateP99US = -1
	if m.late.Known {
		f.EmulatorLateP99US = us(m.late.P99)
	}
	for _, s := range m.traffic {
		f.EmulatorDrops += int64(s.AB.DroppedQueue + s.BA.DroppedQueue)
	}
	f.ClientCPU = m.drive.ClientCPU()
	f.ClientLateP99US = us(m.drive.Late.Quantile(0.99))
	f.EventLateP99US = us(eventLate(m.events))
	f.HostCores = runtime.NumCPU()
	f.HostCPUMax = m.hostCPUMax
	if s := (m.drive.Duration + m.drive.Drain).Seconds(); s > 0 { // what the counters span
		f.HostCPU = m.machine.Busy.Seconds() / s
		f.StealShare = m.machine.Steal.Seconds() / s / float64(f.HostCores)
	}
	return f
}

// clientCores is how many cores the driver may use.
func (r *run) clientCores() float64 {
	cores := float64(runtime.NumCPU())
	if quota := r.Cell.Experiment.Client.CPU; quota > 0 {
		cores = min(cores, quota)
	}
	return cores
}

// rules are what recovery is measured by.
func (r *run) rules() recovery.Rules {
	e := r.Cell.Experiment.Recovery
	return recovery.Rules{Baseline: e.Baseline.Duration().Seconds(), Goodput: float64(e.Goodput), P99: e.P99, Hold: e.Hold.Duration().Seconds(), SLA: us(e.SLA.Duration())}
}

func (r *run) limits() Limits {
	f := r.Cell.Experiment.Fidelity
	return Limits{
		RTTErrorMS: ms(f.RTTError.Duration()), BandwidthError: float64(f.BandwidthError),
		EventLateUS: us(f.EventLate.Duration()), EmulatorLateUS: us(f.EmulatorLate.Duration()), ClientLateUS: us(f.ClientLate.Duration()),
		ClientCPUShare: float64(f.ClientCPU), HostCPUShare: float64(f.HostCPU), StealShare: float64(f.Steal),
	}
}
