package compare

import (
	"bufio"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strconv"

	"skerry/internal/report"
	"skerry/internal/report/svg"
)

const page = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark"><title>Comparison – Skerry</title><style>{{style}}</style></head>
<body><main>{{range .Pairs}}
<section><h2>A {{.A}}<br>B {{.B}}</h2>
<div class="wide"><table><thead><tr><th class="text">metric</th><th>A mean</th><th>±</th><th>SD</th><th>B mean</th><th>±</th><th>SD</th><th>change</th><th>g</th><th>uncorrected</th><th>p</th></tr></thead>
<tbody>{{range .Rows}}<tr>{{range $i, $c := .}}<td{{if not $i}} class="text"{{end}}>{{$c}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
<ul class="findings">{{range .Sentences}}<li>{{.}}</li>{{end}}</ul>
{{with .Links}}<h3>Round trips of links</h3><div class="wide"><table><thead><tr><th class="text">link</th><th>A</th><th>B</th><th>B/A</th></tr></thead>
<tbody>{{range .}}<tr>{{range $i, $c := .}}<td{{if not $i}} class="text"{{end}}>{{$c}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{end}}
{{with .Charts}}<h3>CPU of the data nodes</h3><div class="pair">{{range .}}<figure>{{.}}</figure>{{end}}</div>{{end}}
{{with .Caution}}<p class="note">{{.}}</p>{{end}}</section>{{end}}
<p class="note">±: half-width of the 95 % confidence interval of the mean over repetitions. g: Hedges' g with the small-sample correction, positive where B is higher; uncorrected: (B − A) / √((SD²+SD²)/2). p: permutation test of the means. Of twenty metrics that are alike one has p below 0.05 by chance.</p>
</main></body></html>`

// pairView is a pair ready to print.
type pairView struct {
	A, B      string
	Rows      [][]string
	Sentences []string
	Links     [][]string
	Charts    []template.HTML
	Caution   string
}

// HTML writes a page that needs nothing beside itself.
func (r Report) HTML(w io.Writer) error {
	t, err := template.New("compare").Funcs(template.FuncMap{"style": report.Style}).Parse(page)
	if err != nil {
		return fmt.Errorf("reading the comparison's page: %w", err)
	}
	var v struct{ Pairs []pairView }
	for _, p := range r.Pairs {
		v.Pairs = append(v.Pairs, p.view())
	}
	b := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(b, v), b.Flush()); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

func (p Pair) view() pairView {
	v := pairView{A: p.A.String(), B: p.B.String(), Links: p.linkRows()}
	for _, m := range p.shown(true) {
		u := m.Unit.Write
		v.Rows = append(v.Rows, []string{m.Name, u(m.A.Mean), optional(m.A.CI95, u), optional(m.A.SD, u), u(m.B.Mean), optional(m.B.CI95, u), optional(m.B.SD, u),
			optional(m.Change, func(c float64) string { return fmt.Sprintf("%+.1f %%", 100*c) }), optional(m.HedgesG, signed), optional(m.GUncorrected, signed),
			optional(m.P, func(p float64) string { return strconv.FormatFloat(p, 'g', 2, 64) })})
		if m.Leading && m.Sized() {
			v.Sentences = append(v.Sentences, m.Sentence)
		}
	}
	v.Sentences = append(v.Sentences, p.Censored...)
	if p.CPU != nil {
		v.Charts = p.CPU.charts()
		if p.CPU.GOfSeconds != nil {
			v.Caution = fmt.Sprintf("Over seconds, as the documents compute it, g is %s; seconds of one run are not independent.", signed(*p.CPU.GOfSeconds))
		}
	}
	return v
}

// charts are the curve over time and the distribution.
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
		draw("Mean of nodes and repetitions over time", svg.Axis{Label: "seconds since the measurement began", Format: short}, svg.Axis{Label: c.Unit, Format: short},
			func(s CPUSide) []Point { return s.Curve }),
		draw("Distribution over seconds", svg.Axis{Label: c.Unit, Format: short}, svg.Axis{Label: "share of seconds at most so busy", Format: short},
			func(s CPUSide) []Point { return s.CDF }),
	}
}
