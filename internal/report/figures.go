package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/evidence/stats"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

// Figures are the results of a run for presentations outside this package.
type Figures struct {
	model *model

	// State counts the trials by outcome. Unfinished is a sentence, "" for a complete run.
	State, Unfinished string
	// Tally counts trials by outcome.
	Tally Tally
	// Vary are the parameters that differ between cells, Fixed all others.
	Vary, Fixed []Axis
	Cells       []CellFigures
	// Highlights are the most important findings. Findings are all of them, as sentences.
	Highlights []Highlight
	Findings   []string
	// RerunCommand is a shell command.
	RerunCommand string
	Environment  []Fact
	// Notes report unreadable files and other problems of the record.
	Notes []string
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

// Axis is a parameter with its values, sorted.
type Axis struct {
	Name   string
	Label  string
	Values []string
}

// CellFigures is one combination of parameters.
type CellFigures struct {
	// Label names the varying parameters, or all parameters if none varies.
	Label string
	// Values holds, for each axis of Figures.Vary, the index of the cell's value.
	Values  []int
	Planned int
	Trials  []record.Trial
	// Used are the trials behind the figures: the valid ones. If none is valid, they are the
	// suspect ones and Weak is set.
	Used []record.Trial
	Weak bool
	// Operation is the kind of operation whose latency represents the cell, "" if nothing was
	// measured.
	Operation string
	Verdict   string
	// Bound is the bottleneck, MadeBy the main cause of the 99th percentile; "" if unknown.
	Bound, MadeBy string
	// Estimates are the means over Used, by metric of TrialMetrics.
	Estimates map[string]stats.Estimate
	// Latencies are listed by kind of operation, the one of Operation first.
	Latencies []LatencyFigures
}

// LatencyFigures are the latencies of one kind of operation in a cell, in microseconds, by metric.
type LatencyFigures struct {
	Operation string
	Estimates map[string]stats.Estimate
}

// NewFigures computes the figures of a run. It does not read the time series of trials.
func NewFigures(d *record.Dir) Figures {
	m := newModel(d)
	n := m.tally()
	f := Figures{model: m, State: m.state(), Unfinished: m.unfinished(), RerunCommand: rerunCommand(d.Run.File),
		Findings: m.findings(), Highlights: m.highlights(),
		Tally: Tally{n.planned, n.valid, n.suspect, n.failed, n.interrupted, n.missing()}}
	f.Environment = m.environment()
	place := make([]map[string]int, len(m.vary))
	for i, name := range m.vary {
		a := Axis{Name: name, Label: shortName(name)}
		place[i] = map[string]int{}
		for _, p := range m.sortedValues(name) {
			place[i][formatValue(name, p)] = len(a.Values)
			a.Values = append(a.Values, m.valueLabel(name, p))
		}
		f.Vary = append(f.Vary, a)
	}
	for _, name := range m.fixed {
		if all := trialParameters(d); len(all) > 0 {
			f.Fixed = append(f.Fixed, Axis{Name: name, Label: shortName(name), Values: []string{m.valueLabel(name, all[0][name])}})
		}
	}
	for _, c := range m.cells {
		x := CellFigures{Label: m.cellName(c), Planned: c.planned, Trials: c.trials, Used: c.used, Weak: c.weak, Verdict: verdictLabel(c),
			Bound: bottleneckLabel(c.used), MadeBy: latencyCauseLabel(c.used), Estimates: c.estimates}
		for i, name := range m.vary {
			x.Values = append(x.Values, place[i][formatValue(name, c.parameters[name])])
		}
		if o, ok := c.leadingOperation(); ok {
			x.Operation = o.name
		}
		for _, o := range c.operations {
			of := func(t record.Trial) map[string]float64 { return latencyMetrics(t, o.name) }
			if o.count > 0 {
				x.Latencies = append(x.Latencies, LatencyFigures{o.name, estimateMeans(c.used, of)})
			}
		}
		f.Cells = append(f.Cells, x)
	}
	f.Notes = m.notes
	return f
}

func (m *model) unfinished() string {
	n := m.tally()
	switch {
	case m.dir.Running:
		return fmt.Sprintf("The run was still in progress when this report was made: %d of %s had ended.", len(m.dir.Summary.Trials),
			Plural(n.planned, "trial"))
	case n.missing()+n.interrupted > 0:
		return fmt.Sprintf("The run was interrupted: %d of %s missing. The recorded trials are complete.", n.missing()+n.interrupted,
			Plural(n.planned, "trial"))
	}
	return ""
}

func (m *model) sortedValues(name string) (values []any) {
	seen := map[string]bool{}
	for _, c := range m.cells {
		p := c.parameters[name]
		if text := formatValue(name, p); !seen[text] {
			seen[text] = true
			values = append(values, p)
		}
	}
	sortValues(name, values)
	return values
}

// valueLabel formats a value as tables show it: "1 (5X)" for a scale of the paper.
func (m *model) valueLabel(name string, v any) string {
	if n, ok := toFloat(v); ok && name == paramScale && m.scales.vary() {
		return m.scales.label(n)
	}
	return formatValue(name, v)
}

// TrialName returns the name of a trial in sentences: the varying parameters and its repetition.
func (c CellFigures) TrialName(t record.Trial) string {
	if c.Planned > 1 {
		return c.Label + ", repetition " + strconv.Itoa(t.Repetition)
	}
	return c.Label
}

// Fact is a line of the environment description.
type Fact struct{ Name, Value string }

func (m *model) environment() (facts []Fact) {
	r := m.dir.Run
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, value})
		}
	}
	add("Host", r.Host.Name)
	add("System", r.Host.OS)
	add("Kernel", r.Host.Kernel)
	if r.Host.Cores > 0 {
		add("Processor", fmt.Sprintf("%s, %s", r.Host.CPU, Plural(r.Host.Cores, "core")))
	}
	if r.Host.MemoryBytes > 0 {
		add("Memory", fmt.Sprintf("%.1f GiB", float64(r.Host.MemoryBytes)/(1<<30)))
	}
	facts = append(facts, m.machineFacts()...)
	if r.Engine.Name != "" {
		add("Link engine", strings.TrimSuffix(r.Engine.Name+": "+r.Engine.Why, ": "))
	}
	add("Skerry", r.Versions.Skerry)
	add("Go", r.Versions.Go)
	for _, name := range slices.Sorted(maps.Keys(r.Versions.Databases)) {
		add(experiment.ShortLabel(name), r.Versions.Databases[name])
	}
	add("Seed", strconv.FormatUint(r.Seed, 10))
	add("Started", r.Started.Format(time.RFC1123Z))
	if !r.Finished.IsZero() {
		add("Finished", r.Finished.Format(time.RFC1123Z))
	}
	for _, t := range r.Resumed {
		add("Resumed", t.Format(time.RFC1123Z))
	}
	add("Run directory", m.dir.Summary.Run)
	return facts
}

func rerunCommand(f record.File) string {
	line := []string{"skerry", "run", fileName(f.Path)}
	for _, s := range f.Set {
		line = append(line, "--set", s)
	}
	if f.Fast {
		line = append(line, "--fast")
	}
	return quoteShell(line)
}

// quoteShell joins arguments into a line that a POSIX shell splits into the same arguments.
func quoteShell(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		safe := a != "" && !strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,%+@", r)
		})
		if !safe {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted[i] = a
	}
	return strings.Join(quoted, " ")
}

func fileName(path string) string {
	if path == "" {
		return "experiment.yaml"
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}
