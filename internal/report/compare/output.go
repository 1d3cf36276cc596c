package compare

import (
	"bufio"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"skerry/internal/record/metric"
	"skerry/internal/report"
	"skerry/internal/report/svg"
)

const significant = 0.05

func (m Metric) describe() string {
	a, b := m.Unit.Format(m.A.Mean), m.Unit.Format(m.B.Mean)
	if m.A.Mean == m.B.Mean {
		return fmt.Sprintf("%s is the same on both sides, %s.", m.Name, a)
	}
	what := "higher"
	if m.B.Mean < m.A.Mean {
		what = "lower"
	}
	head := fmt.Sprintf("%s is %s in B: %s against %s", m.Name, what, b, a)
	if m.Change != nil {
		head = fmt.Sprintf("%s is %s %s in B: %s against %s", m.Name, formatPercent(math.Abs(*m.Change)), what, b, a)
	}
	switch {
	case m.HedgesG == nil && (m.A.N < 2 || m.B.N < 2):
		return head + "; one repetition cannot distinguish this from noise."
	case m.P == nil:
		return head + "."
	case *m.P < significant:
		return fmt.Sprintf("%s; chance alone gives such a difference in %s of cases%s.", head, formatPercent(*m.P), m.effectSize())
	case m.LeastP >= significant:
		return fmt.Sprintf("%s; so few repetitions (%d and %d) cannot distinguish this from noise: p cannot be below %.2g.", head, m.A.N,
			m.B.N, m.LeastP)
	}
	return fmt.Sprintf("%s; this may be chance, which gives such a difference in %s of cases.", head, formatPercent(*m.P))
}

const negligibleEffect = 0.2

// effectSize names an effect size as in Cohen, "Statistical Power Analysis", 1988.
func (m Metric) effectSize() string {
	if m.HedgesG == nil {
		return ""
	}
	g := math.Abs(*m.HedgesG)
	word := "a negligible effect"
	switch {
	case g >= 0.8:
		word = "a large effect"
	case g >= 0.5:
		word = "a medium effect"
	case g >= negligibleEffect:
		word = "a small effect"
	}
	return fmt.Sprintf(" (%s, g %s)", word, formatHundredths(g))
}

func formatPercent(share float64) string {
	if share < 0.0095 {
		return strconv.FormatFloat(100*share, 'g', 2, 64) + " %"
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64) + " %"
}

func formatHundredths(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func (p Pair) shownMetrics(all bool) (metrics []Metric) {
	for _, m := range p.Metrics {
		if (all || m.Leading) && m.SameAs == "" {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// Text prints tables and sentences. all includes every metric.
func (r Report) Text(w io.Writer, all bool) error {
	p := report.NewPrinter(w)
	for i, pair := range r.Pairs {
		if i > 0 {
			p.Linef("")
		}
		p.Linef("A  %s", pair.A)
		p.Linef("B  %s", pair.B)
		p.Linef("")
		writeTable(p, pair, all)
		p.Linef("")
		for _, m := range pair.shownMetrics(all) {
			if m.IsNotable() {
				p.Linef("%s", m.Sentence)
			}
		}
		for _, c := range pair.Censored {
			p.Linef("%s", c)
		}
		if len(pair.Links) > 0 {
			writeLinks(p, pair)
		}
		if pair.CPU != nil {
			writeCPU(p, *pair.CPU)
		}
	}
	for _, n := range r.Notes {
		p.Linef("note: %s", n)
	}
	p.Linef("")
	p.Linef("±: 95 %% confidence interval over repetitions. g: Hedges' g, positive if B is higher; uncorrected: without the")
	p.Linef("small-sample correction. p: permutation test, seed %d. Of twenty equal metrics one has p < 0.05 by chance.", r.Seed)
	return p.Flush()
}

func (s Side) String() string {
	text := fmt.Sprintf("%s, cell %d: %s; %s", s.Run, s.Cell, describeParameters(s.Parameters), report.Plural(len(s.Trials), "repetition"))
	if s.Suspect {
		text += ", all of them suspect"
	}
	return text
}

func writeTable(p report.Printer, pair Pair, all bool) {
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "metric\tA mean\t±\tSD\tvariance\tB mean\t±\tSD\tvariance\tchange\tg\tuncorrected\tp\t")
	for _, m := range pair.shownMetrics(all) {
		change := "–"
		if m.Change != nil {
			change = fmt.Sprintf("%+.1f %%", 100**m.Change)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", m.Name, formatSide(m.A, m.Unit), formatSide(m.B, m.Unit), change,
			formatOptional(m.HedgesG, formatHundredths)+"\t"+formatOptional(m.GUncorrected, formatHundredths),
			formatOptional(m.P, func(v float64) string { return strconv.FormatFloat(v, 'g', 2, 64) }))
	}
	_ = t.Flush() // p keeps the error
}

// formatSide returns the four columns of one side. The variance is in the square of the base unit.
func formatSide(f SideFigures, u metric.Unit) string {
	variance := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	return u.Format(f.Mean) + "\t" + formatOptional(f.CI95, u.Format) + "\t" + formatOptional(f.SD, u.Format) + "\t" +
		formatOptional(f.Variance, variance)
}

func formatOptional(v *float64, write func(float64) string) string {
	if v == nil {
		return "–"
	}
	return write(*v)
}

func writeCPU(p report.Printer, c CPU) {
	at := func(s CPUSide, q int) string { return strconv.FormatFloat(s.CDF[q-1].X, 'g', 3, 64) }
	p.Linef("")
	p.Linef("CPU of data nodes over seconds, %s", c.Unit)
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmean\tSD\tvariance\tp5\tp25\tp50\tp75\tp95\t")
	for _, s := range []struct {
		name string
		CPUSide
	}{{"A", c.A}, {"B", c.B}} {
		fmt.Fprintf(t, "%s\t%.3g\t%.3g\t%.3g\t%s\t%s\t%s\t%s\t%s\t\n", s.name, s.Mean, s.SD, s.Variance,
			at(s.CPUSide, 5), at(s.CPUSide, 25), at(s.CPUSide, 50), at(s.CPUSide, 75), at(s.CPUSide, 95))
	}
	_ = t.Flush() // p keeps the error
	if c.GOfSeconds != nil {
		p.Linef("g over seconds, as in the original papers: %s (seconds of one run are not independent)", formatHundredths(*c.GOfSeconds))
	}
}

const page = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark"><title>Comparison – Skerry</title><style>{{style}}</style></head>
<body><main>{{range .Pairs}}
<section><h2>A {{.A}}<br>B {{.B}}</h2>
<div class="wide"><table><thead><tr><th class="text">metric</th>
<th>A mean</th><th>±</th><th>SD</th>
<th>B mean</th><th>±</th><th>SD</th><th>change</th><th>g</th><th>uncorrected</th><th>p</th></tr></thead>
<tbody>{{range .Rows}}<tr>{{range $i, $c := .}}<td{{if not $i}} class="text"{{end}}>{{$c}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
<ul class="findings">{{range .Sentences}}<li>{{.}}</li>{{end}}</ul>
{{with .Links}}<h3>Round trips of links</h3>
<div class="wide"><table><thead><tr><th class="text">link</th><th>A</th><th>B</th><th>B/A</th></tr></thead>
<tbody>{{range .}}<tr>{{range $i, $c := .}}<td{{if not $i}} class="text"{{end}}>{{$c}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{end}}
{{with .Charts}}<h3>CPU of the data nodes</h3><div class="pair">{{range .}}<figure>{{.}}</figure>{{end}}</div>{{end}}
{{with .Caution}}<p class="note">{{.}}</p>{{end}}</section>{{end}}
<p class="note">±: half-width of the 95 % confidence interval of the mean over repetitions. 
g: Hedges' g with the small-sample correction, positive if B is higher; uncorrected: (B − A) / √((SD²+SD²)/2). 
p: permutation test of the means. Of twenty equal metrics one has p below 0.05 by chance.</p>
</main></body></html>`

type pairView struct {
	A, B      string
	Rows      [][]string
	Sentences []string
	Links     [][]string
	Charts    []template.HTML
	Caution   string
}

// HTML writes a self-contained page.
func (r Report) HTML(w io.Writer) error {
	t, err := template.New("compare").Funcs(template.FuncMap{"style": report.Style}).Parse(page)
	if err != nil {
		return fmt.Errorf("parse comparison page: %w", err)
	}
	var v struct{ Pairs []pairView }
	for _, p := range r.Pairs {
		v.Pairs = append(v.Pairs, p.view())
	}
	b := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(b, v), b.Flush()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func (p Pair) view() pairView {
	v := pairView{A: p.A.String(), B: p.B.String(), Links: p.linkRows()}
	for _, m := range p.shownMetrics(true) {
		u := m.Unit.Format
		v.Rows = append(v.Rows, []string{m.Name, u(m.A.Mean), formatOptional(m.A.CI95, u), formatOptional(m.A.SD, u), u(m.B.Mean),
			formatOptional(m.B.CI95, u), formatOptional(m.B.SD, u),
			formatOptional(m.Change, func(c float64) string { return fmt.Sprintf("%+.1f %%", 100*c) }),
			formatOptional(m.HedgesG, formatHundredths), formatOptional(m.GUncorrected, formatHundredths),
			formatOptional(m.P, func(p float64) string { return strconv.FormatFloat(p, 'g', 2, 64) })})
		if m.Leading && m.IsNotable() {
			v.Sentences = append(v.Sentences, m.Sentence)
		}
	}
	v.Sentences = append(v.Sentences, p.Censored...)
	if p.CPU != nil {
		v.Charts = p.CPU.charts()
		if p.CPU.GOfSeconds != nil {
			v.Caution = fmt.Sprintf("Over seconds, as in the original papers, g is %s; seconds of one run are not independent.",
				formatHundredths(*p.CPU.GOfSeconds))
		}
	}
	return v
}

func (c CPU) charts() []template.HTML {
	draw := func(title string, x, y svg.Axis, of func(CPUSide) []Point) template.HTML {
		plot := svg.Plot{Label: title + " of both sides.", Title: title, X: x, Y: y}
		for i, s := range []struct {
			name string
			CPUSide
		}{{"A", c.A}, {"B", c.B}} {
			line := svg.Series{Name: s.name, Class: svg.Color(i)}
			for _, p := range of(s.CPUSide) {
				line.Points = append(line.Points, svg.Point{X: p.X, Y: p.Y})
			}
			plot.Series = append(plot.Series, line)
		}
		return template.HTML(plot.SVG())
	}
	short := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	return []template.HTML{
		draw("Mean of nodes and repetitions over time", svg.Axis{Label: "seconds since the measurement began", Format: short},
			svg.Axis{Label: c.Unit, Format: short},
			func(s CPUSide) []Point { return s.Curve }),
		draw("Distribution over seconds", svg.Axis{Label: c.Unit, Format: short},
			svg.Axis{Label: "share of seconds up to this usage", Format: short},
			func(s CPUSide) []Point { return s.CDF }),
	}
}
