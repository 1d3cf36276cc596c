package report

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"skerry/internal/record"
)

// TextOptions configure Text.
type TextOptions struct {
	// Width is the terminal width in characters, 0 for no limit.
	Width int
	// Trials prints a row for every trial instead of one for every cell.
	Trials bool
}

// Text prints a run's results as a table with findings and warnings.
func Text(w io.Writer, d *record.Dir, o TextOptions) error { return newModel(d).writeText(w, o) }

// Text prints the run without reading its files again.
func (f Figures) Text(w io.Writer, o TextOptions) error { return f.model.writeText(w, o) }

func (m *model) writeText(w io.Writer, o TextOptions) error {
	d := m.dir
	p := NewPrinter(w)
	p.Linef("%s  %s", sanitize(d.Run.Name), sanitize(d.Path))
	p.Linef("%s", m.header())
	for _, d := range m.warnings() {
		p.Linef("! %s", sanitize(d.Text))
	}
	if len(m.fixed) > 0 && len(d.Summary.Trials) > 0 {
		p.Linef("all trials: %s", sanitize(describeParameters(m.fixed, d.Summary.Trials[0].Parameters)))
	}
	p.Linef("")
	switch {
	case len(d.Summary.Trials) == 0:
		p.Linef("no trial has ended yet")
	case o.Trials:
		m.trialTable().write(p, o.Width)
	default:
		m.cellTable().write(p, o.Width)
	}
	m.writeNotes(p)
	return p.Flush()
}

// JSON prints summary.json, including trials that a killed run did not add to it.
func JSON(w io.Writer, d *record.Dir) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d.Summary)
}

// Printer buffers lines of text. Its Flush returns the first error of the writer.
type Printer struct{ *bufio.Writer }

func NewPrinter(w io.Writer) Printer { return Printer{bufio.NewWriter(w)} }

// Linef prints a line.
func (p Printer) Linef(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (m *model) header() string {
	r := m.dir.Run
	parts := []string{r.Started.Format("2006-01-02 15:04")}
	if !r.Finished.IsZero() {
		parts = append(parts, FormatDuration(r.Finished.Sub(r.Started)))
	}
	parts = append(parts, m.state())
	if r.Engine.Name != "" {
		parts = append(parts, "engine "+sanitize(r.Engine.Name))
	}
	return strings.Join(parts, " · ")
}

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
			what = "pending"
		}
		add(n.missing(), what)
	}
	s := Plural(n.planned, "trial")
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	return s
}

func (m *model) parameterColumns() (names []string, columns []column) {
	names = m.vary
	if len(names) == 0 {
		names = slices.DeleteFunc(slices.Clone(m.fixed), func(n string) bool { return n != paramWorkload && n != paramScale })
	}
	for _, n := range names {
		columns = append(columns, column{head: sanitize(shortName(n)), left: true})
	}
	return names, columns
}

func (m *model) parameterCells(names []string, p map[string]any) (cells []string) {
	for _, n := range names {
		text := formatValue(n, p[n])
		if v, ok := toFloat(p[n]); ok && n == paramScale {
			text = m.scales.label(v)
		}
		cells = append(cells, sanitize(text))
	}
	return cells
}

func (m *model) writeNotes(p Printer) {
	p.Linef("")
	for _, f := range m.findings() {
		p.Linef("%s", sanitize(f))
	}
	for _, f := range m.machineFacts() {
		p.Linef("%s: %s", sanitize(f.Name), sanitize(f.Value))
	}
	for _, t := range m.dir.Summary.Trials {
		switch {
		case t.State == record.TrialFailed:
			p.Linef("trial %d failed: %s", t.ID, sanitize(firstLine(t.Error)))
		case t.State == record.TrialOK && t.Verdict.State != record.Valid:
			p.Linef("trial %d is suspect: %s", t.ID, sanitize(strings.Join(t.Verdict.Reasons, "; ")))
		}
		for _, n := range t.Verdict.Notes {
			p.Linef("trial %d: %s", t.ID, sanitize(n))
		}
		for _, r := range t.Replaced {
			p.Linef("trial %d was repeated: %s", t.ID, sanitize(describeReplaced(r)))
		}
	}
	m.writeSideTables(p)
	m.writeEvents(p)
	m.writePhases(p)
	m.writeResizings(p)
	m.writeProbes(p)
	m.writeAudits(p)
	for _, line := range m.assertionLines() {
		p.Linef("%s", line)
	}
	if s := m.scales.note(); s != "" {
		p.Linef("%s", s)
	}
	if slices.ContainsFunc(m.cells, func(c *cell) bool { return c.goodput().HasInterval() }) {
		p.Linef("±: 95 %% confidence interval over n repetitions")
	}
	for _, n := range append(slices.Clone(m.dir.Run.Warnings), m.notes...) {
		p.Linef("note: %s", sanitize(n))
	}
	if n := m.tally(); n.missing()+n.interrupted > 0 && !m.dir.Running {
		p.Linef("the run was interrupted; resume it with: skerry run --resume %s", sanitize(m.dir.Path))
	}
}

func describeReplaced(r record.Replaced) string {
	return fmt.Sprintf("the attempt in %s was %s: %s", r.Dir, r.Verdict.State, strings.Join(r.Verdict.Reasons, "; "))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

//go:embed style.css
var style string

// Style returns the style sheet of pages without scripts. It colours the charts of package svg.
func Style() template.CSS { return template.CSS(style) }
