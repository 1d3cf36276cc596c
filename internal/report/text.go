package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/record"
)

// TextOptions of Text.
type TextOptions struct {
	// Width of the terminal in characters; 0 is no bound.
	Width int
	// Trials prints a row for every trial in place of one for every cell.
	Trials bool
}

// Text prints a run's results as a table with what is to be known about them.
func Text(w io.Writer, d *record.Dir, o TextOptions) error { return newModel(d).text(w, o) }

// Text prints what they are of, as the function Text does, without reading it again.
func (f Figures) Text(w io.Writer, o TextOptions) error { return f.model.text(w, o) }

func (m *model) text(w io.Writer, o TextOptions) error {
	d := m.dir
	p := &printer{w: w}
	p.linef("%s  %s", plain(d.Run.Name), plain(d.Path))
	p.linef("%s", m.textHead())
	for _, d := range m.doubts() {
		p.linef("! %s", plain(d.Text))
	}
	if len(m.fixed) > 0 && len(d.Summary.Trials) > 0 {
		p.linef("all trials: %s", plain(say(m.fixed, d.Summary.Trials[0].Parameters)))
	}
	p.linef("")
	switch {
	case len(d.Summary.Trials) == 0:
		p.linef("no trial has ended yet")
	case o.Trials:
		p.try(m.trialTable().write(w, o.Width))
	default:
		p.try(m.cellTable().write(w, o.Width))
	}
	m.textNotes(p)
	return p.err
}

// JSON prints summary.json, with trials that a killed run did not put there.
func JSON(w io.Writer, d *record.Dir) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d.Summary)
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) linef(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) try(err error) {
	if p.err == nil {
		p.err = err
	}
}

// textHead says when, where and how it stands.
func (m *model) textHead() string {
	r := m.dir.Run
	parts := []string{r.Started.Format("2006-01-02 15:04")}
	if !r.Finished.IsZero() {
		parts = append(parts, took(r.Finished.Sub(r.Started)))
	}
	parts = append(parts, m.state())
	if r.Engine.Name != "" {
		parts = append(parts, "engine "+plain(r.Engine.Name))
	}
	return strings.Join(parts, " · ")
}

// state says how many trials ended how.
func (m *model) state() string {
	n := m.tally()
	parts := []string{}
	add := func(k int, what string) {
		if k > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k, what))
		}
	}
	add(n.valid, "valid")
	add(n.suspect, "suspect")
	add(n.failed, "failed")
	add(n.interrupted, "interrupted")
	if n.missing() > 0 {
		what := "not run"
		if m.dir.Running {
			what = "to come"
		}
		add(n.missing(), what)
	}
	s := plural(n.planned, "trial")
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	return s
}

// parameterColumns begin every row; names are their parameters.
func (m *model) parameterColumns() (names []string, columns []column) {
	names = m.vary
	if len(names) == 0 {
		names = slices.DeleteFunc(slices.Clone(m.fixed), func(n string) bool { return n != paramWorkload && n != paramScale })
	}
	for _, n := range names {
		columns = append(columns, column{head: plain(shortName(n)), left: true})
	}
	return names, columns
}

func (m *model) parameterCells(names []string, p map[string]any) (cells []string) {
	for _, n := range names {
		text := valueText(n, p[n])
		if v, ok := number(p[n]); ok && n == paramScale {
			text = m.scales.text(v)
		}
		cells = append(cells, plain(text))
	}
	return cells
}

// overTime heads the column of sparklines: the goodput over a trial's measurement, from 0 to
// its highest; of a cell that of its first trial.
const overTime = "goodput over time"

// cellColumns stand behind the parameters of a cell; the third is headed by the scale that it is a
// multiple of.
var cellColumns = []column{
	{head: "goodput/s"}, {head: "throughput/s", need: 9}, {head: "×", need: 4},
	{head: "operation", left: true}, {head: "p50 ms", need: 5}, {head: "p95 ms"}, {head: "p99 ms", need: 2},
	{head: "errors", need: 1}, {head: "traffic MB", need: 6}, {head: "RTT error ms", need: 8},
	{head: "n", need: 7}, {head: "bound by", left: true, need: 3}, {head: "verdict", left: true}, {head: overTime, left: true, need: 10},
}

// cellOperation is the place of the operation among the columns of a cell.
const cellOperation = 3

func (m *model) cellTable() textTable {
	names, columns := m.parameterColumns()
	t := textTable{columns: append(columns, cellColumns...)}
	t.columns[len(names)+2].head = "× that at " + m.scales.text(m.scales.largest())
	for _, c := range m.cells {
		row := append(m.parameterCells(names, c.parameters), m.cellRow(c)...)
		spark := ""
		if len(c.used) > 0 {
			spark = m.spark(c.used[0])
		}
		t.rows = append(t.rows, append(row, spark))
		t.rows = append(t.rows, m.otherOperations(len(names), c)...)
	}
	return t
}

// otherOperations are rows below a cell's own: the latency of what else it does.
func (m *model) otherOperations(names int, c *cell) (rows [][]string) {
	for i, o := range c.operations {
		if i == 0 || o.count == 0 {
			continue
		}
		row := make([]string, names+len(cellColumns))
		copy(row[names+cellOperation:], []string{plain(o.name), millis(o.latency.P50), millis(o.latency.P95), millis(o.latency.P99)})
		rows = append(rows, row)
	}
	return rows
}

func (m *model) cellRow(c *cell) []string {
	row := make([]string, 13)
	row[10], row[11], row[12] = fmt.Sprintf("%d", len(c.used)), plain(boundOf(c.used)), verdictOf(c)
	if len(c.used) == 0 {
		row[0] = none
		return row
	}
	row[0], row[1] = interval(c.goodput()), interval(c.estimates[metricThroughput])
	if r := m.relative(c, (*cell).goodput); m.scales.vary() && r.N > 0 {
		row[2] = strconv.FormatFloat(r.Mean, 'f', 2, 64)
	}
	if o, ok := c.main(); ok {
		row[3], row[4], row[5], row[6] = plain(o.name), millis(o.latency.P50), millis(o.latency.P95), millis(o.latency.P99)
	}
	_, share := notOK(outcomes(c.used))
	row[7] = percent(share)
	row[8] = megabytes(c.traffic().Mean)
	row[9] = exact(worstRTT(c.used))
	return row
}

func worstRTT(trials []record.Trial) (worst float64) {
	for _, t := range trials {
		worst = max(worst, t.Fidelity.WorstRTTErrorMS)
	}
	return worst
}

// verdictOf says in a few words whether a cell can be believed.
func verdictOf(c *cell) string {
	n := map[string]int{}
	for _, t := range c.trials {
		if t.State != record.TrialOK {
			n[t.State]++
		} else {
			n[t.Verdict.State]++
		}
	}
	n["not run"] = c.planned - len(c.trials)
	var parts []string
	for _, s := range []string{record.Valid, record.Suspect, record.TrialFailed, record.TrialInterrupted, "not run"} {
		switch {
		case n[s] == 0:
		case n[s] == c.planned:
			parts = append(parts, s)
		case s != record.Valid:
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	if len(parts) == 0 {
		return record.Valid
	}
	return strings.Join(parts, ", ")
}

func (m *model) trialTable() textTable {
	names, columns := m.parameterColumns()
	t := textTable{columns: append(append([]column{{head: "trial"}}, columns...),
		column{head: "rep", need: 6}, column{head: "goodput/s"}, column{head: "throughput/s", need: 9},
		column{head: "operation", left: true, need: 3}, column{head: "p50 ms", need: 5}, column{head: "p95 ms"}, column{head: "p99 ms", need: 2},
		column{head: "errors", need: 1}, column{head: "traffic MB", need: 7}, column{head: "RTT error ms", need: 8},
		column{head: "time", need: 4}, column{head: "stopped by", left: true, need: 10}, column{head: "bound by", left: true, need: 5}, column{head: "verdict", left: true}, column{head: overTime, left: true, need: 11})}
	for _, r := range m.dir.Summary.Trials {
		row := append([]string{strconv.Itoa(r.ID)}, m.parameterCells(names, r.Parameters)...)
		t.rows = append(t.rows, append(append(row, m.trialRow(r)...), m.spark(r)))
	}
	return t
}

func (m *model) trialRow(t record.Trial) []string {
	row := make([]string, 14)
	row[0] = strconv.Itoa(t.Repetition)
	if t.State != record.TrialOK {
		row[1], row[13] = none, t.State
		return row
	}
	row[1], row[2] = trialGoodput(t), figure(t.Throughput)
	if o, ok := m.mainOf(t); ok {
		l := t.Operations[o].Latency()
		row[3], row[4], row[5], row[6] = plain(o), millis(l.P50), millis(l.P95), millis(l.P99)
	}
	_, share := notOK(t.Outcomes)
	row[7], row[8], row[9] = percent(share), megabytes(float64(t.Traffic.TotalBytes)), exact(t.Fidelity.WorstRTTErrorMS)
	row[10], row[11], row[12], row[13] = seconds(t.DurationS), plain(t.Stopped), plain(boundOf([]record.Trial{t})), plain(t.Verdict.State)
	return row
}

// trialGoodput is with the interval over the trial's own batches, where that means something.
func trialGoodput(t record.Trial) string {
	if half, steady := t.Steady(); steady {
		return plusMinus(t.Goodput, half)
	}
	return figure(t.Goodput)
}

// mainOf names the operation that stands for a trial: that of its cell.
func (m *model) mainOf(t record.Trial) (name string, ok bool) {
	for _, c := range m.cells {
		if slices.ContainsFunc(c.trials, func(x record.Trial) bool { return x.ID == t.ID }) {
			o, _ := c.main()
			return o.name, t.Operations[o.name].Count > 0
		}
	}
	return "", false
}

// textNotes tell what stands behind the table.
func (m *model) textNotes(p *printer) {
	p.linef("")
	for _, f := range m.findings() {
		p.linef("%s", plain(f))
	}
	for _, f := range m.machineFacts() {
		p.linef("%s: %s", plain(f.Name), plain(f.Value))
	}
	for _, t := range m.dir.Summary.Trials {
		switch {
		case t.State == record.TrialFailed:
			p.linef("trial %d failed: %s", t.ID, plain(firstLine(t.Error)))
		case t.State == record.TrialOK && t.Verdict.State != record.Valid:
			p.linef("trial %d is suspect: %s", t.ID, plain(strings.Join(t.Verdict.Reasons, "; ")))
		}
		for _, n := range t.Verdict.Notes {
			p.linef("trial %d: %s", t.ID, plain(n))
		}
		for _, r := range t.Replaced {
			p.linef("trial %d was run again: %s", t.ID, plain(replaced(r)))
		}
	}
	m.textSides(p)
	m.textEvents(p)
	m.textPhases(p)
	m.textResizings(p)
	m.textProbes(p)
	m.textAudits(p)
	for _, line := range m.assertions() {
		p.linef("%s", line)
	}
	if s := m.scales.note(); s != "" {
		p.linef("%s", s)
	}
	if slices.ContainsFunc(m.cells, func(c *cell) bool { return c.goodput().HasInterval() }) {
		p.linef("±: 95 %% confidence interval over n repetitions")
	}
	for _, n := range append(slices.Clone(m.dir.Run.Warnings), m.notes...) {
		p.linef("note: %s", plain(n))
	}
	if n := m.tally(); n.missing()+n.interrupted > 0 && !m.dir.Running {
		p.linef("the run was interrupted; go on with: skerry run --resume %s", plain(m.dir.Path))
	}
}

// replaced says why an attempt at a trial does not count, and where it is.
func replaced(r record.Replaced) string {
	return fmt.Sprintf("the attempt in %s was %s: %s", r.Dir, r.Verdict.State, strings.Join(r.Verdict.Reasons, "; "))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
