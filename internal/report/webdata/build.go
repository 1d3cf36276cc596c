package webdata

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/series"
	"skerry/internal/topology"
)

func newRun(d *record.Dir, f report.Figures) Run {
	r := d.Run
	doc := Run{Schema: Schema, Name: r.Name, Description: r.Description, Directory: d.Summary.Run, State: f.State, Unfinished: f.Unfinished,
		Running: d.Running, Tally: f.Tally, Started: r.Started, Finished: r.Finished, Command: nonNil(r.Command), Again: f.RerunCommand,
		File:       r.File,
		Experiment: string(r.Experiment), Environment: [][2]string{}, Warnings: r.Warnings, Notes: f.Notes, Highlights: nonNil(f.Highlights),
		Findings: nonNil(f.Findings), Vary: convertAxes(f.Vary), Fixed: convertAxes(f.Fixed), Metrics: metrics,
		Operations: nonNil(operationKinds(f.Cells)), Cells: []Cell{}, Trials: []Trial{}}
	for _, e := range f.Environment {
		doc.Environment = append(doc.Environment, [2]string{e.Name, e.Value})
		if e.Name == "Seed" {
			doc.Seed = e.Value
		}
	}
	for _, p := range r.Plan {
		doc.Order = append(doc.Order, p.ID)
	}
	place := map[int]int{}
	byID := map[int]Trial{}
	for i, c := range f.Cells {
		doc.Cells = append(doc.Cells, newCell(c))
		for _, t := range c.Trials {
			place[t.ID], byID[t.ID] = i, newTrial(c, t, i)
		}
	}
	for _, t := range d.Summary.Trials {
		if x, ok := byID[t.ID]; ok {
			doc.Trials = append(doc.Trials, x)
		}
	}
	return doc
}

func operationKinds(cells []report.CellFigures) []string {
	n := map[string]int{}
	for _, c := range cells {
		for _, l := range c.Latencies {
			n[l.Operation]++
		}
	}
	return slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
}

// nonNil returns a copy that JSON writes as a list, never as null.
func nonNil[T any](l []T) []T { return append([]T{}, l...) }

func convertAxes(in []report.Axis) []Axis {
	out := make([]Axis, 0, len(in))
	for _, a := range in {
		out = append(out, Axis(a))
	}
	return out
}

func newCell(c report.CellFigures) Cell {
	cell := Cell{Label: c.Label, Values: c.Values, Planned: c.Planned, Trials: []int{}, Weak: c.Weak, Operation: c.Operation,
		Verdict: c.Verdict, Bound: c.Bound, MadeBy: c.MadeBy,
		Estimates: map[string]Estimate{}, Latencies: []Latencies{}}
	if cell.Values == nil {
		cell.Values = []int{}
	}
	for _, t := range c.Trials {
		cell.Trials = append(cell.Trials, t.ID)
	}
	for _, l := range c.Latencies {
		of := Latencies{Operation: l.Operation, Estimates: map[string]Estimate{}}
		for id, e := range l.Estimates {
			of.Estimates[id] = newEstimate(e)
		}
		cell.Latencies = append(cell.Latencies, of)
	}
	for id, e := range c.Estimates {
		x := newEstimate(e)
		if id == goodput && e.N == 1 {
			if half, steady := c.Used[0].SteadyInterval(); steady {
				x.Half, x.Within = series.Number(half), true
			}
		}
		cell.Estimates[id] = x
	}
	return cell
}

func newEstimate(e stats.Estimate) Estimate {
	return Estimate{N: e.N, Mean: series.Number(e.Mean), SD: series.Number(e.SD), Half: series.Number(e.HalfWidth)}
}

func newTrial(c report.CellFigures, t record.Trial, cell int) Trial {
	half, _ := t.SteadyInterval()
	x := Trial{ID: t.ID, Cell: cell, Repetition: t.Repetition, Name: c.TrialName(t), State: t.State, Error: t.Error, Stopped: t.Stopped,
		DurationS: series.Number(t.DurationS), WarmupS: series.Number(t.WarmupS), SetupS: series.Number(t.SetupS), Verdict: t.Verdict,
		Bound: t.Bound, LatencyBound: t.LatencyBound, Outcomes: t.Outcomes,
		Values: map[string]series.Number{}, Half: series.Number(half), Operations: t.Operations, Errors: t.Errors, Events: t.Events,
		Audit:      t.Audit,
		Assertions: t.Assertions, Fidelity: t.Fidelity, Replaced: t.Replaced, Detail: t.State == record.TrialOK}
	x.Fidelity.Links = []record.LinkFidelity{}
	if t.State == record.TrialOK {
		for id, v := range report.TrialMetrics(t, c.Operation) {
			x.Values[id] = series.Number(v)
		}
	}
	return x
}

// NewDetail returns the document of one trial, thinned for a report of that many trials. Unreadable
// files are omitted and noted.
func NewDetail(d *record.Dir, t record.Trial, trials int) Detail {
	l := newLimits(trials)
	out := Detail{Schema: Schema, ID: t.ID, Links: t.Fidelity.Links, Probes: series.NewProbes(t.Probes),
		Traffic: newTraffic(t.Traffic, l.pairs)}
	note := func(err error) {
		if err != nil {
			out.Notes = append(out.Notes, err.Error())
		}
	}
	seconds, err := d.Timeline(t.ID)
	note(err)
	out.Timeline = series.NewTimeline(seconds, l.points)
	pools, err := d.PoolSeconds(t.ID)
	note(err)
	out.Pools = series.PoolRates(pools, seconds, l.points)
	errors, err := d.ErrorSeconds(t.ID)
	note(err)
	out.Errors = series.ErrorRates(errors, seconds, l.points)
	nodes, err := d.Nodes(t.ID)
	note(err)
	out.Nodes = series.NewNodes(nodes, l.nodes, math.MaxInt, l.nodeValues)
	network, err := d.Network(t.ID)
	note(err)
	out.Network = series.NewNetwork(network, l.points)
	events, err := d.Events(t.ID)
	note(err)
	out.Bands = append(series.EventBands(events), series.StealBands(seconds)...)
	out.Curves, out.Heat, out.Operations, err = series.ReadLatencies(d, t.ID, l.points, l.heat)
	note(err)
	cloud, err := d.Topology(t.ID)
	note(err)
	out.Cloud = newCloud(cloud, t.Fidelity.Links, l.links)
	return out
}

// newCloud returns the map of a trial. Round trips are those set in the trial, those measured on
// real links, or else those of the topology.
func newCloud(t *topology.Topology, links []record.LinkFidelity, most int) *Cloud {
	if t == nil {
		return nil
	}
	c := &Cloud{Sites: []Site{}, Nodes: []Node{}, Links: []CloudLink{}}
	site, node, set := map[string]int{}, map[string]int{}, map[string]float64{}
	for i, s := range t.Sites {
		site[s.Name] = i
		c.Sites = append(c.Sites, Site{s.Name, series.Number(s.Lat), series.Number(s.Lon), s.Located})
	}
	for i, n := range t.Nodes {
		node[n.Name] = i
		c.Nodes = append(c.Nodes, Node{n.Name, site[n.Site], string(n.Role)})
	}
	for _, l := range links {
		set[l.ID] = l.SetRTTMS
		if l.Real {
			set[l.ID] = l.RTTMS
		}
	}
	for _, l := range t.Links {
		rtt, ok := set[l.ID]
		if !ok {
			rtt = float64(l.AB.Latency+l.BA.Latency) / float64(time.Millisecond)
		}
		c.Links = append(c.Links, CloudLink{l.ID, node[l.A], node[l.B], series.Number(rtt), lowerBandwidth(l.AB.Bandwidth, l.BA.Bandwidth)})
	}
	// Links within a site are not drawn. The shortest of the others are kept.
	if c.Left = len(c.Links) - most; c.Left > 0 {
		slices.SortStableFunc(c.Links, func(a, b CloudLink) int { return cmp.Compare(a.RTTMS, b.RTTMS) })
		c.Links = c.Links[:most]
	}
	c.Left = max(0, c.Left)
	return c
}

// lowerBandwidth returns the smaller bandwidth, where 0 means unlimited.
func lowerBandwidth(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// newTraffic keeps the pairs with the most traffic.
func newTraffic(measured *record.Traffic, most int) *Traffic {
	if measured == nil {
		return nil
	}
	pairs := measured.Pairs
	if len(pairs) == 0 {
		return nil
	}
	t := &Traffic{Left: max(0, len(pairs)-most)}
	if t.Left > 0 {
		pairs = slices.Clone(pairs)
		slices.SortStableFunc(pairs, func(a, b record.PairTraffic) int { return cmp.Compare(b.Bytes, a.Bytes) })
		pairs = pairs[:most]
	}
	index := map[string]int{}
	place := func(name string) int {
		i, ok := index[name]
		if !ok {
			i = len(t.Nodes)
			index[name] = i
			t.Nodes = append(t.Nodes, name)
		}
		return i
	}
	for _, p := range pairs {
		t.From, t.To, t.Bytes = append(t.From, place(p.From)), append(t.To, place(p.To)), append(t.Bytes, p.Bytes)
	}
	return t
}

// limits bound the size of a trial's document, so that a report of a hundred trials has about five
// megabytes.
type limits struct {
	points     int // points of the timeline
	nodeValues int // values of all series of all nodes together
	nodes      int // nodes with a series of their own
	heat       int // columns of the heat map
	links      int
	pairs      int
}

func newLimits(trials int) limits {
	share := func(whole, least, most int) int { return min(most, max(least, whole/max(1, trials))) }
	return limits{points: share(60_000, 120, 1200), nodeValues: share(420_000, 3000, 120_000), nodes: 24,
		heat: share(4000, 40, 120), links: share(200_000, 500, 4000), pairs: share(200_000, 500, 4000)}
}
