package report

import (
	"fmt"
	"strconv"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
)

// Figures are a run as presentations outside this package take it: its matrix, which trials
// make each cell, and what there is to say in words.
type Figures struct {
	model *model

	// State says how many trials ended how; Unfinished is a sentence when not every one did.
	State, Unfinished string
	Tally             Tally
	// Vary are the parameters that differ between cells, Fixed those that do not.
	Vary, Fixed []Axis
	Cells       []CellFigures
	// Highlights are the few findings that matter most, Findings all of them in sentences.
	Highlights []Highlight
	Findings   []string
	// Again is the command that runs the experiment again.
	Again       string
	Environment [][2]string // name and value
	Notes       []string    // what of the run could not be read, or is to be known
}

// Tally counts trials by what became of them.
type Tally struct {
	Planned     int `json:"planned"`
	Valid       int `json:"valid"`
	Suspect     int `json:"suspect"`
	Failed      int `json:"failed"`
	Interrupted int `json:"interrupted"`
	Missing     int `json:"missing"`
}

// Axis is a parameter with its values in order.
type Axis struct {
	Name   string
	Label  string
	Values []string
}

// CellFigures is one combination of parameters.
type CellFigures struct {
	Label   string // what varies; all parameters where nothing does
	Values  []int  // of each varying parameter, the place of the cell's value
	Planned int
	Trials  []record.Trial
	// Used are the trials that figures are made of: the valid ones or, when there is none,
	// the suspect ones, which Weak says.
	Used []record.Trial
	Weak bool
	// Operation is the one whose latency stands for the cell's; "" when nothing was measured.
	Operation string
	Verdict   string
	// Bound says what bound it, and MadeBy what made its 99th percentile, "" where that is not known.
	Bound, MadeBy string
	// Estimates are the means of Used by metric, those of ValuesOf.
	Estimates map[string]stats.Estimate
	// Latencies are by kind of operation, that which stands for the cell first.
	Latencies []LatencyFigures
}

// LatencyFigures are the latencies of one kind of operation of a cell, in microseconds: by metric
// the mean over its trials, as Estimates has them of the leading one.
type LatencyFigures struct {
	Operation string
	Estimates map[string]stats.Estimate
}

// FiguresOf reads what there is to know about a run beside its trials' series.
func FiguresOf(d *record.Dir) Figures {
	m := newModel(d)
	n := m.tally()
	f := Figures{model: m, State: m.state(), Unfinished: m.unfinished(), Again: again(d.Run.File), Findings: m.findings(), Highlights: m.highlights(),
		Tally: Tally{n.planned, n.valid, n.suspect, n.failed, n.interrupted, n.missing()}}
	for _, fact := range m.environment() {
		f.Environment = append(f.Environment, [2]string{fact.Name, fact.Value})
	}
	place := make([]map[string]int, len(m.vary))
	for i, name := range m.vary {
		a := Axis{Name: name, Label: shortName(name)}
		place[i] = map[string]int{}
		for _, p := range m.ordered(name) {
			place[i][valueText(name, p)] = len(a.Values)
			a.Values = append(a.Values, m.valueName(name, p))
		}
		f.Vary = append(f.Vary, a)
	}
	for _, name := range m.fixed {
		if all := parametersOf(d); len(all) > 0 {
			f.Fixed = append(f.Fixed, Axis{Name: name, Label: shortName(name), Values: []string{m.valueName(name, all[0][name])}})
		}
	}
	for _, c := range m.cells {
		x := CellFigures{Label: m.name(c), Planned: c.planned, Trials: c.trials, Used: c.used, Weak: c.weak, Verdict: verdictOf(c), Bound: boundOf(c.used), MadeBy: madeOf(c.used), Estimates: c.estimates}
		for i, name := range m.vary {
			x.Values = append(x.Values, place[i][valueText(name, c.parameters[name])])
		}
		if o, ok := c.main(); ok {
			x.Operation = o.name
		}
		for _, o := range c.operations {
			of := func(t record.Trial) map[string]float64 { return latenciesOf(t, o.name) }
			if o.count > 0 {
				x.Latencies = append(x.Latencies, LatencyFigures{o.name, estimate(c.used, of)})
			}
		}
		f.Cells = append(f.Cells, x)
	}
	f.Notes = m.notes
	return f
}

// unfinished is a sentence when not every trial has ended, else "".
func (m *model) unfinished() string {
	n := m.tally()
	switch {
	case m.dir.Running:
		return fmt.Sprintf("This run was still under way when the report was made: %d of %d trials had ended.", len(m.dir.Summary.Trials), n.planned)
	case n.missing()+n.interrupted > 0:
		return fmt.Sprintf("This run was interrupted: %d of %s are missing. What is here is whole.", n.missing()+n.interrupted, plural(n.planned, "trial"))
	}
	return ""
}

// ordered are the values of a parameter in the order of cells.
func (m *model) ordered(name string) (values []any) {
	seen := map[string]bool{}
	for _, c := range m.cells {
		p := c.parameters[name]
		if text := valueText(name, p); !seen[text] {
			seen[text] = true
			values = append(values, p)
		}
	}
	sortValues(name, values)
	return values
}

// valueName is a value as tables name it: "5X" for a scale of 1.
func (m *model) valueName(name string, v any) string {
	if n, ok := number(v); ok && name == paramScale && m.scales.vary() {
		return m.scales.text(n)
	}
	return valueText(name, v)
}

// Called is the name by which sentences call a trial: what varies, and its repetition.
func (c CellFigures) Called(t record.Trial) string {
	if c.Planned > 1 {
		return c.Label + ", repetition " + strconv.Itoa(t.Repetition)
	}
	return c.Label
}
