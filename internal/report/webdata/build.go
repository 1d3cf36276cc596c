package webdata

import (
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/stats"
)

// Of makes the document of a run.
func Of(d *record.Dir) Run {
	f := report.FiguresOf(d)
	r := d.Run
	doc := Run{Schema: Schema, Name: r.Name, Description: r.Description, Directory: d.Summary.Run, State: f.State, Unfinished: f.Unfinished,
		Running: d.Running, Tally: f.Tally, Started: r.Started, Finished: r.Finished, Command: r.Command, Again: f.Again, File: r.File,
		Experiment: string(r.Experiment), Environment: f.Environment, Warnings: r.Warnings, Notes: f.Notes, Highlights: f.Highlights,
		Findings: f.Findings, Vary: axes(f.Vary), Fixed: axes(f.Fixed), Metrics: metrics, Cells: []Cell{}, Trials: []Trial{}}
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

func axes(in []report.Axis) []Axis {
	out := make([]Axis, 0, len(in))
	for _, a := range in {
		out = append(out, Axis(a))
	}
	return out
}

func cellOf(c report.CellFigures) Cell {
	cell := Cell{Label: c.Label, Values: c.Values, Planned: c.Planned, Trials: []int{}, Weak: c.Weak, Operation: c.Operation, Verdict: c.Verdict,
		Estimates: map[string]Estimate{}}
	if cell.Values == nil {
		cell.Values = []int{}
	}
	for _, t := range c.Trials {
		cell.Trials = append(cell.Trials, t.ID)
	}
	values := map[string][]float64{}
	for _, t := range c.Used {
		for id, v := range valuesOf(t, c.Operation) {
			values[id] = append(values[id], float64(v))
		}
	}
	for id, vs := range values {
		e := stats.Of(vs)
		x := Estimate{N: e.N, Mean: num(e.Mean), SD: num(e.SD), Half: num(e.HalfWidth)}
		if id == goodput && e.N == 1 && c.Used[0].Batches > 0 {
			x.Half, x.Within = num(c.Used[0].Interval), true
		}
		cell.Estimates[id] = x
	}
	return cell
}

func trialOf(c report.CellFigures, t record.Trial, cell int) Trial {
	x := Trial{ID: t.ID, Cell: cell, Repetition: t.Repetition, Name: c.Called(t), State: t.State, Error: t.Error, Stopped: t.Stopped,
		DurationS: num(t.DurationS), WarmupS: num(t.WarmupS), SetupS: num(t.SetupS), Verdict: t.Verdict, Outcomes: t.Outcomes, Retries: t.Retries,
		Values: map[string]num{}, Half: num(t.Interval), Operations: t.Operations, Errors: t.Errors, Events: t.Events, Audit: t.Audit,
		Assertions: t.Assertions, Fidelity: t.Fidelity, Detail: t.State == record.TrialOK}
	x.Fidelity.Links = nil
	if t.State == record.TrialOK {
		x.Values = valuesOf(t, c.Operation)
	}
	return x
}

// DetailOf makes the document of one trial, thinned for a run of so many trials. What could
// not be read is left out and noted.
func DetailOf(d *record.Dir, t record.Trial, trials int) Detail {
	l := limitsFor(trials)
	out := Detail{Schema: Schema, ID: t.ID, Links: t.Fidelity.Links, Probes: probesOf(t.Probes), Traffic: trafficOf(t.Traffic.Pairs, l.pairs)}
	note := func(err error) {
		if err != nil {
			out.Notes = append(out.Notes, err.Error())
		}
	}
	seconds, err := d.Timeline(t.ID)
	note(err)
	out.Timeline = timelineOf(seconds, l.points)
	nodes, err := d.Nodes(t.ID)
	note(err)
	out.Nodes = nodesOf(nodes, l)
	network, err := d.Network(t.ID)
	note(err)
	out.Network = networkOf(network, l.points)
	events, err := d.Events(t.ID)
	note(err)
	out.Bands = bandsOf(events)
	out.Curves, out.Heat, out.Operations, err = latencies(d, t.ID, l)
	note(err)
	cloud, err := d.Topology(t.ID)
	note(err)
	out.Cloud = cloudOf(cloud, t.Fidelity.Links, l.links)
	return out
}
