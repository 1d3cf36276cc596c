// Package report computes the figures, findings and text tables of a run from its record.
package report

import (
	"maps"
	"slices"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
)

// model holds the cells of the matrix with their repetitions, in groups that differ only in scale.
type model struct {
	dir    *record.Dir
	vary   []string // parameters that differ between cells
	fixed  []string // parameters that do not
	scales scales
	cells  []*cell
	groups []*group
	notes  []string // unreadable files
}

// group is the cells of one combination of parameters except the scale.
type group struct {
	label string   // "workload A"; "" when nothing but the scale varies
	cells []*cell  // by scale
	names []string // parameters in label
}

type cell struct {
	parameters map[string]any
	scale      float64
	group      *group
	planned    int
	trials     []record.Trial
	// used are the trials behind the figures: the valid ones, else the suspect ones, which weak
	// marks.
	used []record.Trial
	weak bool

	estimates  map[string]stats.Estimate // by metric
	operations []operation               // the leading one first, then by count
}

func newModel(d *record.Dir) *model {
	all := trialParameters(d)
	m := &model{dir: d, scales: newScales(d.Run.Name, all), notes: slices.Clone(d.Notes)}
	m.vary, m.fixed = splitParameters(all)
	m.collectCells()
	slices.SortStableFunc(m.cells, func(a, b *cell) int { return compareParameters(m.vary, a.parameters, b.parameters) })
	for _, c := range m.cells {
		c.planned = max(c.planned, len(c.trials))
		m.estimateCell(c)
		m.groupCell(c)
	}
	for _, g := range m.groups {
		g.putLeadingFirst()
	}
	return m
}

func (m *model) collectCells() {
	known := map[string]*cell{}
	find := func(p map[string]any) *cell {
		key := describeParameters(m.vary, p)
		if known[key] == nil {
			c := &cell{parameters: p}
			c.scale, _ = toFloat(p[paramScale])
			known[key] = c
			m.cells = append(m.cells, c)
		}
		return known[key]
	}
	for _, p := range m.dir.Run.Plan {
		find(p.Parameters).planned++
	}
	for _, t := range m.dir.Summary.Trials {
		c := find(t.Parameters)
		c.trials = append(c.trials, t)
	}
}

// groupCell adds a cell to its group. It must be called in the order of cells.
func (m *model) groupCell(c *cell) {
	var names []string
	for _, n := range m.vary {
		if n != paramScale {
			names = append(names, n)
		}
	}
	if n := len(m.groups); n > 0 && compareParameters(names, m.groups[n-1].cells[0].parameters, c.parameters) == 0 {
		c.group = m.groups[n-1]
		c.group.cells = append(c.group.cells, c)
		return
	}
	c.group = &group{label: describeParameters(names, c.parameters), names: names, cells: []*cell{c}}
	m.groups = append(m.groups, c.group)
}

func (m *model) estimateCell(c *cell) {
	c.used, c.weak = UsableTrials(c.trials)
	c.operations = m.mergeOperations(c.used)
	leading, _ := c.leadingOperation()
	c.estimates = estimateMetrics(c.used, leading.name)
}

func (g *group) measuredAt(scale float64) *cell {
	for _, c := range g.cells {
		if c.scale == scale && len(c.used) > 0 {
			return c
		}
	}
	return nil
}

func (g *group) extremes() (first, last *cell) {
	for _, c := range g.cells {
		if len(c.used) == 0 {
			continue
		}
		if first == nil {
			first = c
		}
		last = c
	}
	if first == last {
		return nil, nil
	}
	return first, last
}

// relativeGoodput is a cell's goodput divided by that at the group's largest scale, as in Fig. 5 of
// the FHC paper.
func (m *model) relativeGoodput(c *cell) stats.Estimate {
	base := c.group.measuredAt(m.scales.largest())
	switch {
	case base == nil || len(c.used) == 0:
		return stats.Estimate{}
	case base == c:
		return stats.Estimate{N: 1, Mean: 1}
	}
	return stats.EstimateRatio(c.goodput(), base.goodput())
}

func (c *cell) goodput() stats.Estimate { return c.estimates[metricGoodput] }

func (c *cell) traffic() stats.Estimate { return c.estimates[metricTraffic] }

func (c *cell) perOperation() stats.Estimate { return c.estimates[metricPerOperation] }

func outcomes(trials []record.Trial) (o record.Outcomes) {
	for _, t := range trials {
		o.OK += t.Outcomes.OK
		o.Failed += t.Outcomes.Failed
		o.Unknown += t.Outcomes.Unknown
		o.Dropped += t.Outcomes.Dropped
	}
	return o
}

func unsuccessful(o record.Outcomes) (int64, float64) {
	n := o.Failed + o.Unknown + o.Dropped
	if n == 0 {
		return 0, 0
	}
	return n, float64(n) / float64(n+o.OK)
}

type tally struct{ planned, valid, suspect, failed, interrupted int }

func (m *model) tally() (n tally) {
	for _, c := range m.cells {
		n.planned += c.planned
		for _, t := range c.trials {
			switch {
			case t.State == record.TrialFailed:
				n.failed++
			case t.State == record.TrialInterrupted:
				n.interrupted++
			case t.Verdict.State == record.Valid:
				n.valid++
			default:
				n.suspect++
			}
		}
	}
	return n
}

func (n tally) missing() int { return n.planned - n.valid - n.suspect - n.failed - n.interrupted }

const (
	metricGoodput      = "goodput"
	metricThroughput   = "throughput"
	metricTraffic      = "traffic"
	metricPerOperation = "traffic_op"
	metricData         = "data"
	metricDataPer      = "data_op"
)

// TrialMetrics returns the metrics that compare a trial with others. Latencies are response
// times of the operation in microseconds, from the trial's own histogram.
func TrialMetrics(t record.Trial, operation string) map[string]float64 {
	o := t.Outcomes
	v := map[string]float64{metricGoodput: t.Goodput, metricThroughput: t.Throughput, "setup": t.SetupS, "host_cpu": t.Fidelity.HostCPU}
	if ended := o.OK + o.Failed + o.Unknown + o.Dropped; ended > 0 {
		v["errors"] = float64(ended-o.OK) / float64(ended)
	}
	maps.Copy(v, latencyMetrics(t, operation))
	if t.Traffic == nil {
		t.Traffic = new(record.Traffic)
	}
	if bytes := float64(t.Traffic.TotalBytes); bytes > 0 {
		v[metricTraffic] = bytes
		if o.OK > 0 {
			v[metricPerOperation] = bytes / float64(o.OK)
		}
	}
	if bytes := float64(t.Traffic.DataBytes); bytes > 0 {
		v[metricData] = bytes
		if o.OK > 0 {
			v[metricDataPer] = bytes / float64(o.OK)
		}
	}
	for _, h := range t.Events {
		if h.Recovery.BaselineOps > 0 {
			v["recover"] = max(v["recover"], h.Recovery.RecoverS)
		}
	}
	return v
}

func latencyMetrics(t record.Trial, operation string) map[string]float64 {
	s := t.Operations[operation]
	if s.Count == 0 {
		return nil
	}
	l := s.Latency()
	return map[string]float64{"mean": l.Mean, "p50": l.P50, "p95": l.P95, "p99": l.P99, "p999": l.P999}
}

func estimateMetrics(trials []record.Trial, operation string) map[string]stats.Estimate {
	return estimateMeans(trials, func(t record.Trial) map[string]float64 { return TrialMetrics(t, operation) })
}

func estimateMeans(trials []record.Trial, of func(record.Trial) map[string]float64) map[string]stats.Estimate {
	values := map[string][]float64{}
	for _, t := range trials {
		for name, v := range of(t) {
			values[name] = append(values[name], v)
		}
	}
	estimates := make(map[string]stats.Estimate, len(values))
	for name, list := range values {
		estimates[name] = stats.EstimateMean(list)
	}
	return estimates
}

// UsableTrials returns the valid trials. If there are none, it returns the suspect ones and sets
// weak.
func UsableTrials(trials []record.Trial) (used []record.Trial, weak bool) {
	for _, t := range trials {
		if t.State == record.TrialOK && t.Verdict.State == record.Valid {
			used = append(used, t)
		}
	}
	if used != nil {
		return used, false
	}
	for _, t := range trials {
		if t.State == record.TrialOK {
			used = append(used, t)
		}
	}
	return used, used != nil
}
