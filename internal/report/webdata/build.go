package webdata

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/series"
)

// Of makes the document of a run.
func Of(d *record.Dir) Run { return of(d, report.FiguresOf(d)) }

func of(d *record.Dir, f report.Figures) Run {
	r := d.Run
	doc := Run{Schema: Schema, Name: r.Name, Description: r.Description, Directory: d.Summary.Run, State: f.State, Unfinished: f.Unfinished,
		Running: d.Running, Tally: f.Tally, Started: r.Started, Finished: r.Finished, Command: list(r.Command), Again: f.Again, File: r.File,
		Experiment: string(r.Experiment), Environment: list(f.Environment), Warnings: r.Warnings, Notes: f.Notes, Highlights: list(f.Highlights),
		Findings: list(f.Findings), Vary: axes(f.Vary), Fixed: axes(f.Fixed), Metrics: metrics, Operations: list(operationsOf(f.Cells)), Cells: []Cell{}, Trials: []Trial{}}
	for _, e := range f.Environment {
		if e[0] == "Seed" {
			doc.Seed = e[1]
		}
	}
	for _, p := range r.Plan {
		doc.Order = append(doc.Order, p.ID)
	}
	place := map[int]int{}
	byID := map[int]Trial{}
	for i, c := range f.Cells {
		doc.Cells = append(doc.Cells, cellOf(c))
		for _, t := range c.Trials {
			place[t.ID], byID[t.ID] = i, trialOf(c, t, i)
		}
	}
	for _, t := range d.Summary.Trials {
		if x, ok := byID[t.ID]; ok {
			doc.Trials = append(doc.Trials, x)
		}
	}
	return doc
}

// operationsOf are the kinds of operation of cells: those that most cells have come first.
func operationsOf(cells []report.CellFigures) []string {
	n := map[string]int{}
	for _, c := range cells {
		for _, l := range c.Latencies {
			n[l.Operation]++
		}
	}
	return slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
}

// list is one that JSON writes as a list, also where there is none.
func list[T any](l []T) []T { return append([]T{}, l...) }

func axes(in []report.Axis) []Axis {
	out := make([]Axis, 0, len(in))
	for _, a := range in {
		out = append(out, Axis(a))
	}
	return out
}

func cellOf(c report.CellFigures) Cell {
	cell := Cell{Label: c.Label, Values: c.Values, Planned: c.Planned, Trials: []int{}, Weak: c.Weak, Operation: c.Operation, Verdict: c.Verdict, Bound: c.Bound, MadeBy: c.MadeBy,
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
			of.Estimates[id] = estimateOf(e)
		}
		cell.Latencies = append(cell.Latencies, of)
	}
	for id, e := range c.Estimates {
		x := estimateOf(e)
		if id == goodput && e.N == 1 {
			if half, steady := c.Used[0].Steady(); steady {
				x.Half, x.Within = series.Number(half), true
			}
		}
		cell.Estimates[id] = x
	}
	return cell
}

func estimateOf(e stats.Estimate) Estimate {
	return Estimate{N: e.N, Mean: series.Number(e.Mean), SD: series.Number(e.SD), Half: series.Number(e.HalfWidth)}
}

func trialOf(c report.CellFigures, t record.Trial, cell int) Trial {
	half, _ := t.Steady()
	x := Trial{ID: t.ID, Cell: cell, Repetition: t.Repetition, Name: c.Called(t), State: t.State, Error: t.Error, Stopped: t.Stopped,
		DurationS: series.Number(t.DurationS), WarmupS: series.Number(t.WarmupS), SetupS: series.Number(t.SetupS), Verdict: t.Verdict, Bound: t.Bound, LatencyBound: t.LatencyBound, Outcomes: t.Outcomes, Retries: t.Retries,
		Values: map[string]series.Number{}, Half: series.Number(half), Operations: t.Operations, Errors: t.Errors, Events: t.Events, Audit: t.Audit,
		Assertions: t.Assertions, Fidelity: t.Fidelity, Replaced: t.Replaced, Detail: t.State == record.TrialOK}
	x.Fidelity.Links = []record.LinkFidelity{}
	if t.State == record.TrialOK {
		for id, v := range report.ValuesOf(t, c.Operation) {
			x.Values[id] = series.Number(v)
		}
	}
	return x
}

// DetailOf makes the document of one trial, thinned for a run of so many trials. What could
// not be read is left out and noted.
func DetailOf(d *record.Dir, t record.Trial, trials int) Detail {
	l := limitsFor(trials)
	out := Detail{Schema: Schema, ID: t.ID, Links: t.Fidelity.Links, Probes: series.ProbesOf(t.Probes), Traffic: trafficOf(t.Traffic.Pairs, l.pairs)}
	note := func(err error) {
		if err != nil {
			out.Notes = append(out.Notes, err.Error())
		}
	}
	seconds, err := d.Timeline(t.ID)
	note(err)
	out.Timeline = series.TimelineOf(seconds, l.points)
	pools, err := d.PoolSeconds(t.ID)
	note(err)
	out.Pools = series.PoolsOf(pools, seconds, l.points)
	errors, err := d.ErrorSeconds(t.ID)
	note(err)
	out.Errors = series.ErrorsOf(errors, seconds, l.points)
	nodes, err := d.Nodes(t.ID)
	note(err)
	out.Nodes = series.NodesOf(nodes, l.nodes, math.MaxInt, l.nodeValues)
	network, err := d.Network(t.ID)
	note(err)
	out.Network = series.NetworkOf(network, l.points)
	events, err := d.Events(t.ID)
	note(err)
	out.Bands = append(series.BandsOf(events), series.StolenOf(seconds)...)
	out.Curves, out.Heat, out.Operations, err = series.Latencies(d, t.ID, l.points, l.heat)
	note(err)
	cloud, err := d.Topology(t.ID)
	note(err)
	out.Cloud = cloudOf(cloud, t.Fidelity.Links, l.links)
	return out
}
