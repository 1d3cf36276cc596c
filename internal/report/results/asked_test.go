package results

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// pretended renders the pages as if every step had been measured: each trial of its experiment is valid and has every
// metric that its step stores.
type pretended struct {
	Folder
	plan Plan
	made map[string][]Row // by step
}

func (p pretended) step(name string) (Step, error) {
	for _, page := range p.plan.Pages {
		if i := slices.IndexFunc(page.Steps, func(s Step) bool { return s.Name == name }); i >= 0 {
			return page.Steps[i], nil
		}
	}
	return Step{}, fmt.Errorf("the plan has no step %s", name)
}

func (p pretended) Rows(name string) ([]Row, error) {
	if rows, ok := p.made[name]; ok {
		return rows, nil
	}
	s, err := p.step(name)
	if err != nil {
		return nil, err
	}
	e, err := experiment.Load(filepath.Join(root, s.Run), s.Set, false)
	if err != nil {
		return nil, err
	}
	d := &record.Dir{}
	for _, c := range e.Plan() {
		d.Summary.Trials = append(d.Summary.Trials, trialOf(c))
	}
	rows, err := TrialRows(d, s.Keep)
	if slices.Contains(s.Keep, changePrefix+"*") { // stored in the file of events
		for _, r := range rows {
			for _, figure := range []string{"leave.accepted", "leave.complete", "join.accepted", "join.complete"} {
				r.Figures[changePrefix+"Rome."+figure] = 1
			}
		}
	}
	p.made[name] = rows
	return rows, err
}

func trialOf(c experiment.Cell) record.Trial {
	const second = 1e6 // in microseconds
	took := record.Latency{Mean: second, P50: second, P95: second, P99: second, P999: second, Max: second}
	one, some := 1.0, record.OperationSummary{Count: 1, Service: took, Response: took}
	t := record.Trial{
		ID: c.ID, Repetition: c.Repetition, State: record.TrialOK, Verdict: record.Verdict{State: record.Valid}, Parameters: c.Parameters,
		Goodput: 1, Outcomes: record.Outcomes{OK: 1}, Operations: map[string]record.OperationSummary{}, Load: &record.Load{Rate: 1, Insert: some},
		Traffic: &record.Traffic{Pairs: []record.PairTraffic{{From: "Rome", To: "Oslo", Bytes: 1}}},
	}
	if c.Experiment.Audit.Enabled {
		t.Audit = &record.Audit{}
	}
	for _, o := range metric.Operations() {
		t.Operations[strings.ReplaceAll(strings.ToUpper(o), "_", "-")] = some
	}
	for _, w := range c.Experiment.Workloads {
		t.Pools = append(t.Pools, record.Pool{Name: w.Name, Goodput: 1, All: some})
	}
	for _, e := range c.Experiment.Events {
		t.Events = append(t.Events, record.EventImpact{Name: e.Name, AtS: 1, AcceptedS: &one, CompleteS: &one,
			Carried: &record.Carried{Rate: 1, Share: 1}, Recovery: record.Recovery{BaselineOps: 1, RecoverS: 1, TakeoverS: &one}})
	}
	if c.Experiment.Workload.Probes != nil {
		t.Probes = []record.Probe{{Operations: t.Operations}, {StartS: 2, Operations: t.Operations}}
	}
	return t
}

func (p pretended) Points(name string) (points []Point, err error) {
	s, err := p.step(name)
	if err != nil {
		return nil, err
	}
	rows, err := p.Rows(name)
	for _, r := range rows {
		at := Point{Trial: r.Trial, Parameters: r.Parameters, Figures: map[string]float64{}}
		for _, name := range s.Over {
			at.Figures[name] = 1
		}
		points = append(points, at)
	}
	return points, err
}

// Every figure on a page is measured and stored by its step. A mismatch must not be detected only after a night of
// measurements.
func TestPagesUseStoredFigures(t *testing.T) {
	as := pretended{folder, load(t), map[string][]Row{}}
	for name, template := range templates(t) {
		p, err := fillPage("x", template, as)
		if err != nil {
			t.Error(err)
		}
		for _, c := range p.Calls {
			for _, lack := range lacking(c) {
				t.Errorf("%s: %s %s %q: no trial of the experiment has %s", name, c.Function, c.Step, c.Options, lack)
			}
		}
	}
}

// lacking returns the figures that a call did not find.
func lacking(c functionCall) []string {
	switch {
	case c.Function == "waiting":
		return nil
	case c.Content == "" || strings.Contains(c.Content, "no valid trial"):
		return []string{"such parameters, or such a figure"}
	case c.Function == "table", c.Function == "ranks":
		return emptyColumns(c.Content)
	}
	return nil
}

// emptyColumns are the columns of a table that have no value in any row.
func emptyColumns(table string) (empty []string) {
	var rows [][]string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, strings.Split(strings.TrimSpace(line), " | "))
		}
	}
	if len(rows) < 3 {
		return []string{"a row"}
	}
	for i, name := range rows[0] {
		if !slices.ContainsFunc(rows[2:], func(r []string) bool { return r[i] != "–" }) {
			empty = append(empty, name)
		}
	}
	return empty
}
