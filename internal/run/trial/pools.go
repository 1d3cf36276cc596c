package trial

import (
	"runtime"
	"sync"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/evidence/sample"
	"skerry/internal/evidence/stats"
	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/load"
	"skerry/internal/record"
)

// pools follows each workload of a measurement; a single workload has one entry.
type pools struct {
	all []*poolWatch
}

type poolWatch struct {
	name        string
	disturbance *driverDisturbance
	batches     *stats.BatchMeans
}

func newPools(e experiment.Experiment) *pools {
	p := &pools{}
	for _, x := range e.Pools() {
		p.all = append(p.all, &poolWatch{x.Name, newDriverDisturbance(clientCores(x.ClientSpec(e))), stats.NewBatchMeans()})
	}
	return p
}

func (p *pools) find(name string) *poolWatch {
	for _, f := range p.all {
		if f.name == name {
			return f
		}
	}
	return nil
}

// addSamples adds the resource use of nodes and machine.
func (p *pools) addSamples(e experiment.Experiment, rows []record.NodeSecond) {
	for i, x := range e.Pools() {
		p.all[i].disturbance.addSamples(x.Node(e), rows)
	}
}

// addInterval adds a second. It returns, in seconds, for how much of it CPUs were taken from the most
// affected driver.
func (p *pools) addInterval(i load.Interval) (stolen float64) {
	for _, x := range i.Pools {
		stolen = max(stolen, p.find(x.Name).disturbance.addInterval(x.Interval))
	}
	return stolen
}

// add adds a second whose rate counts towards the interval.
func (p *pools) add(i load.Interval) {
	for _, x := range i.Pools {
		if x.Length > 0 {
			p.find(x.Name).batches.Add(float64(x.OK) / x.Length.Seconds())
		}
	}
}

// reached reports whether the goodput of every workload is known to within share of its mean.
func (p *pools) reached(share float64) bool {
	for _, f := range p.all {
		if !f.batches.Reached(share) {
			return false
		}
	}
	return true
}

// intervals returns the goodput of each workload.
func (p *pools) intervals() map[string]stats.BatchInterval {
	all := map[string]stats.BatchInterval{}
	for _, f := range p.all {
		all[f.name] = f.batches.Interval()
	}
	return all
}

// worstStolen returns the effect of stolen CPU time on the most affected workload.
func (p *pools) worstStolen() (worst record.Stolen) {
	for i, f := range p.all {
		s := f.disturbance.result()
		if f.name != "" && s.MovedBy != "" {
			s.MovedBy = f.name + "." + s.MovedBy
		}
		if i == 0 || s.Moved > worst.Moved {
			worst = s
		}
	}
	return worst
}

// summarisePools returns the results of each workload, nil for a single workload.
func summarisePools(e experiment.Experiment, l *lab.Lab, m measurement) (out []record.Pool) {
	for i, p := range e.Pools() {
		if p.Name == "" || i >= len(m.drive.Pools) {
			continue
		}
		d := m.drive.Pools[i].Result
		g := m.goodputs[p.Name]
		out = append(out, record.Pool{
			Name: p.Name, Workload: p.Workload.Label(), Client: p.Node(e), Threads: p.Workload.Threads, Target: p.Workload.Target,
			DurationS: d.Duration.Seconds(), Throughput: d.Throughput(), Goodput: d.Goodput(), Interval: g.HalfWidth, Batches: g.Batches,
			Outcomes: record.Outcomes{OK: d.OK, Failed: d.Failed, Unknown: d.Unknown, Dropped: d.Dropped},
			All: record.OperationSummary{
				Count: d.OK, Failed: d.Failed + d.Unknown, Service: d.Latency.Service.Summary(),
				Response: d.Latency.Response.Summary(),
			},
			ClientCPU: d.ClientCPU(), ClientLateP99US: us(d.Late.Quantile(0.99)), Bound: poolBound(e, p, d, l, m),
		})
	}
	return out
}

// poolBound returns what limited the throughput of one workload.
func poolBound(e experiment.Experiment, p experiment.Pool, d load.Result, l *lab.Lab, m measurement) record.Bound {
	ev := sharedEvidence(e, l, m)
	ev.Threads, ev.Target = p.Workload.Threads, p.Workload.Target
	ev.Throughput, ev.Dropped, ev.LatencyS = d.Throughput(), d.DroppedRate(), d.Latency.Service.Mean().Seconds()
	ev.Client = bottleneck.Use{Used: m.clientUse(e, p.Node(e)), Limit: clientCores(p.ClientSpec(e))}
	ev.RoundTripS, ev.FarthestS = distances(l.Links(), ev.Links, e.ClientNodes(), p.Node(e))
	if len(m.serverTrips) > 0 {
		ev.RoundTripS, _ = stats.MeanDeviation(m.serverTrips)
	}
	return bottleneck.ExplainThroughput(ev)
}

// clientUse returns the cores used by the drivers on a client node.
func (m measurement) clientUse(e experiment.Experiment, node string) (cores float64) {
	for i, p := range e.Pools() {
		if p.Node(e) == node && i < len(m.drive.Pools) {
			cores += m.drive.Pools[i].ClientCPU()
		}
	}
	return cores
}

// fullestClient returns the use of the client node with the highest utilisation.
func (m measurement) fullestClient(e experiment.Experiment) (fullest verdict.Use) {
	for _, p := range e.Pools() {
		u := verdict.Use{Cores: m.clientUse(e, p.Node(e)), Of: clientCores(p.ClientSpec(e))}
		if fullest.Of == 0 || u.Cores/u.Of > fullest.Cores/fullest.Of {
			fullest = u
		}
	}
	return fullest
}

// lateUS returns the 99th percentile of send lateness of the latest driver, in µs.
func (m measurement) lateUS() (late float64) {
	for _, p := range m.drive.Pools {
		late = max(late, us(p.Late.Quantile(0.99)))
	}
	return late
}

// clientCores returns the number of cores that the drivers on a client node may use.
func clientCores(c experiment.Client) float64 {
	cores := float64(runtime.NumCPU())
	if c.CPU > 0 {
		cores = min(cores, c.CPU)
	}
	return cores
}

// driverDisturbance records, per second, what kept the driver from running.
type driverDisturbance struct {
	machine verdict.DriverMachine
	seconds []verdict.DriverSecond // of the measurement

	mu        sync.Mutex
	foreign   float64 // cores, in the last sampled second
	throttled float64 // cores, of the client's node
}

func newDriverDisturbance(cores float64) *driverDisturbance {
	return &driverDisturbance{machine: verdict.DriverMachine{Cores: float64(runtime.NumCPU()), DriverCores: cores}}
}

func (h *driverDisturbance) addSamples(client string, rows []record.NodeSecond) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range rows {
		switch r.Node {
		case sample.HostNode:
			h.foreign = r.Foreign
		case client:
			h.throttled = r.Throttled
		}
	}
}

// addInterval adds a second of the driver. It returns for how much of it CPUs were taken from the trial, in
// seconds.
func (h *driverDisturbance) addInterval(i load.Interval) float64 {
	h.mu.Lock()
	s := verdict.DriverSecond{Interval: i, Foreign: h.foreign, Throttled: h.throttled}
	h.mu.Unlock()
	if i.T >= 0 {
		s.Writes, s.Operations, s.Errors = nil, nil, nil // unused
		h.seconds = append(h.seconds, s)
	}
	if !h.machine.Taken(s) {
		return 0
	}
	return s.Disturbance.For.Seconds()
}

func (h *driverDisturbance) result() record.Stolen { return verdict.MeasureSteal(h.machine, h.seconds) }
