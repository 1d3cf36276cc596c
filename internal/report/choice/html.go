package choice

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/evidence/race"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/svg"
	"skerry/internal/run/choose"
)

const page = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
{{if .Answer.Running}}<meta http-equiv="refresh" content="10">{{end}}<meta name="color-scheme" content="light dark"><title>Which database – Skerry</title><style>{{style}}</style></head>
<body><main><header><p class="over">Which database?</p><h1 class="answer">{{.Answer.Sentence}}</h1><p class="when">{{.Basis}}</p>{{if .Answer.Running}}<p class="note"><b>The race goes on</b>; this is the answer so far, and the page follows it.</p>{{end}}{{with .Answer.Compared}}<p class="note">{{.}}</p>{{end}}</header>
{{with .Take}}<section><h2>Take</h2><dl class="take"><dt>Database</dt><dd>{{.Database}} {{.Version}}</dd><dt>Settings</dt><dd>{{range .Settings}}<code>{{.}}</code> {{else}}the default ones{{end}}</dd><dt>Reads</dt><dd>{{.Reads}}</dd><dt>It gives up</dt><dd>{{.GivesUp}}</dd>{{with .Reduced}}<dt>Measured with less</dt><dd>{{.}}</dd>{{end}}</dl></section>{{end}}
<section><h2>Candidates</h2>
<div class="wide"><table><thead><tr><th class="text">candidate</th><th class="text">reads</th>{{range .Answer.Prefer}}<th>{{.}}</th>{{end}}<th>best in</th>{{range .Needs}}<th class="text">{{.}}</th>{{end}}</tr></thead>
<tbody>{{range .Rows}}<tr{{if .Out}} class="out"{{end}}><td class="text"><b>{{.Label}}</b><br><small>{{.GivesUp}}</small></td><td class="text">{{.Reads}}</td>{{range .Shown}}<td>{{.Text}}{{range .Places}}<br><small>{{.}}</small>{{end}}</td>{{end}}<td>{{.Chance}}</td>{{range .Cells}}<td class="text"><span class="verdict {{.Class}}">{{.State}}</span><br><small>{{.Evidence}}</small></td>{{end}}</tr>
{{if .Why}}<tr class="why"><td class="text" colspan="{{$.Columns}}">{{.Why}}</td></tr>{{end}}{{end}}</tbody></table></div>
<p class="note">± is the half-width of the 95 % interval over repetitions; without it there was one trial. "best in": how many of 100 repetitions of these trials would end with that candidate first.</p></section>
{{with .TradeOffs}}<section><h2>Trade-off</h2>{{range .}}<figure>{{.}}</figure>{{end}}<p class="note">On the line: candidates of which none is better in both. Those that fail a need are the other series.</p></section>{{end}}
{{if .Days}}<section><h2>Bad days</h2><p>Operations that ended ok, a second, for the best candidates on the same axis. What happened is shaded.</p>
<div class="pair">{{range .Days}}<figure><figcaption>{{.Name}}</figcaption>{{.Chart}}</figure>{{end}}</div></section>{{end}}
{{with .Answer.Changes}}<section><h2>What would change it</h2><ul class="findings">{{range .}}<li>{{.}}</li>{{end}}</ul></section>{{end}}
{{with .Answer.Notes}}<section><h2>What it rests on</h2><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></section>{{end}}
{{with .Answer.Left}}<section><h2>Not tried</h2><ul>{{range .}}<li><b>{{.Who}}</b>: {{.Why}}</li>{{end}}</ul></section>{{end}}
<section><h2>To be run again</h2><div class="wide"><table><thead><tr><th class="text">candidate</th><th class="text">day</th><th class="text">experiment</th><th class="text">run</th></tr></thead>
<tbody>{{range .Files}}<tr><td class="text">{{.Who}}</td><td class="text">{{.Day}}</td><td class="text"><code>skerry run {{.File}}</code></td><td class="text">{{.Runs}}</td></tr>{{end}}</tbody></table></div></section>
</main></body></html>`

const style = `h1.answer{font-size:28px;line-height:1.3;letter-spacing:-.01em;max-width:40em}tr.out td{color:var(--soft)}tr.why td{border-top:0;color:var(--soft);font-size:13px}td small{color:var(--soft);white-space:normal;display:inline-block;max-width:34em}figcaption{font-weight:600;font-size:15px}dl.take{display:grid;grid-template-columns:max-content 1fr;gap:4px 20px}dl.take dt{color:var(--soft)}dl.take dd{margin:0}`

type view struct {
	Answer  choose.Answer
	Basis   string
	Needs   []string
	Columns int
	Rows    []row
	Take    *take
	// TradeOffs are pictures of the first preferred figure against each of the others.
	TradeOffs []template.HTML
	Days      []dayView
	Files     []fileView
}

type row struct {
	choose.Verdict
	Shown  []shownFigure
	Chance string
	Cells  []cell
}

// shownFigure is a preferred figure, with those of each client.
type shownFigure struct {
	Text   string
	Places []string
}

// take is what somebody who follows the answer sets up.
type take struct {
	choose.Verdict
	Settings []string
}

type cell struct{ State, Class, Evidence string }

type dayView struct {
	Name  string
	Chart template.HTML
}

type fileView struct{ Who, Day, File, Runs string }

// HTML writes a page that needs nothing beside itself. Runs are read from the choice's folder.
func HTML(w io.Writer, a choose.Answer, dir string) error {
	t, err := template.New("choice").Funcs(template.FuncMap{"style": func() template.CSS { return report.Style() + style }}).Parse(page)
	if err != nil {
		return fmt.Errorf("reading the answer's page: %w", err)
	}
	v := view{Answer: a, Basis: Basis(a), Needs: needsOf(a)}
	v.Columns = 3 + len(a.Prefer) + len(v.Needs)
	for _, x := range a.Candidates {
		r := row{Verdict: x, Chance: wins(x)}
		for i, name := range a.Prefer {
			f := shownFigure{Text: value(x, name)}
			for _, p := range x.Places {
				if i == 0 {
					f.Places = append(f.Places, strings.TrimSuffix(p.Name, "."+name)+" "+p.String())
				}
			}
			r.Shown = append(r.Shown, f)
		}
		for _, need := range v.Needs {
			r.Cells = append(r.Cells, cellOf(x, need))
		}
		v.Rows = append(v.Rows, r)
		for _, day := range sorted(x.Files) {
			v.Files = append(v.Files, fileView{x.Label, day, x.Files[day], fmt.Sprint(len(x.Runs[day]), " in ", filepath.Dir(x.Runs[day][0]))})
		}
	}
	v.Take = takeOf(a)
	for i := 1; i < len(a.Prefer); i++ {
		if picture := tradeOff(a, i); picture != "" {
			v.TradeOffs = append(v.TradeOffs, picture)
		}
	}
	if v.Days, err = badDays(a, dir); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(b, v), b.Flush()); err != nil {
		return fmt.Errorf("writing the answer's page: %w", err)
	}
	return nil
}

// needsOf are all needs, each once.
func needsOf(a choose.Answer) (needs []string) {
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			if !slices.Contains(needs, n.Text) {
				needs = append(needs, n.Text)
			}
		}
	}
	return needs
}

// cellOf sums a need up over the days: the worst counts.
func cellOf(v choose.Verdict, need string) (c cell) {
	order := map[string]int{choose.Met: 1, choose.Undecided: 2, choose.NotMet: 3}
	class := map[string]string{choose.Met: "good", choose.Undecided: "busy", choose.NotMet: "bad"}
	for _, n := range v.Needs {
		if n.Text != need || order[n.State] < order[c.State] {
			continue
		}
		if order[n.State] > order[c.State] || n.State != choose.Undecided {
			c = cell{State: n.State, Class: class[n.State], Evidence: n.Value}
		}
		if n.Value != "" && n.Day != race.Quiet {
			c.Evidence = n.Value + ", " + n.Day
		}
	}
	return c
}

// takeOf is the winner's settings, nil where there is none.
func takeOf(a choose.Answer) *take {
	if len(a.Candidates) == 0 || a.Candidates[0].Out != "" {
		return nil
	}
	t := &take{Verdict: a.Candidates[0]}
	for _, name := range choose.OptionNames(t.Candidate) {
		t.Settings = append(t.Settings, fmt.Sprintf("%s: %v", name, t.Options[name]))
	}
	return t
}

// tradeOff plots the first preferred metric against another one.
func tradeOff(a choose.Answer, other int) template.HTML {
	in := svg.Series{Name: "meets the needs so far", Class: svg.Color(2), Dots: true}
	out := svg.Series{Name: "fails one", Class: svg.Color(1), Dots: true}
	for _, v := range a.Candidates {
		x, hasX := figureOf(v, a.Prefer[other])
		y, hasY := figureOf(v, a.Prefer[0])
		if !hasX || !hasY {
			continue
		}
		p := svg.Point{X: x.Mean, Y: y.Mean, Half: y.Half, Tip: v.Label + ": " + y.String() + ", " + x.String()}
		if v.Out == race.Failed {
			out.Points = append(out.Points, svg.Point{X: p.X, Y: nan}, p, svg.Point{X: p.X, Y: nan})
		} else {
			in.Points = append(in.Points, p)
		}
	}
	if len(in.Points)+len(out.Points) < 2 {
		return ""
	}
	frontier := svg.Series{Name: "frontier", Class: svg.Color(0), Points: frontierOf(in.Points)}
	var lone []svg.Point
	for _, p := range in.Points {
		lone = append(lone, svg.Point{X: p.X, Y: nan}, p, svg.Point{X: p.X, Y: nan})
	}
	in.Points = lone
	unit := func(i int) func(float64) string {
		return func(v float64) string {
			for _, c := range a.Candidates {
				if f, ok := figureOf(c, a.Prefer[i]); ok {
					return f.Unit.Write(v)
				}
			}
			return strconv.FormatFloat(v, 'g', 3, 64)
		}
	}
	return template.HTML(svg.Plot{Label: a.Prefer[0] + " against " + a.Prefer[other] + ", a point a candidate.", Width: 900,
		X:      svg.Axis{Label: a.Prefer[other], Format: unit(other)},
		Panels: []svg.Panel{{Height: 300, Y: svg.Axis{Label: a.Prefer[0], Format: unit(0)}, Series: []svg.Series{frontier, in, out}}}}.SVG())
}

func figureOf(v choose.Verdict, name string) (choose.Figure, bool) {
	i := slices.IndexFunc(v.Figures, func(f choose.Figure) bool { return f.Name == name })
	if i < 0 {
		return choose.Figure{}, false
	}
	return v.Figures[i], true
}

// frontierOf are the points of which no other is better in both.
func frontierOf(points []svg.Point) (best []svg.Point) {
	for _, p := range points {
		if !slices.ContainsFunc(points, func(o svg.Point) bool { return o.X <= p.X && o.Y <= p.Y && (o.X < p.X || o.Y < p.Y) }) {
			best = append(best, svg.Point{X: p.X, Y: p.Y})
		}
	}
	slices.SortFunc(best, func(a, b svg.Point) int { return cmp.Compare(a.X, b.X) })
	return best
}

// shown is how many candidates are drawn on a bad day.
const shown = 3

// badDays draw the best candidates' goodput over each bad day.
func badDays(a choose.Answer, dir string) (days []dayView, err error) {
	for _, day := range a.Days[1:] {
		panel := svg.Panel{Y: svg.Axis{Label: "ops/s", Format: func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }}}
		var spans []svg.Span
		for _, v := range a.Candidates {
			if len(v.Runs[day]) == 0 || len(panel.Series) == shown {
				continue
			}
			d, err := record.Open(filepath.Join(dir, v.Runs[day][0]))
			if err != nil {
				return nil, fmt.Errorf("reading a bad day of %s: %w", v.Label, err)
			}
			line, happened, err := course(d, v.Label, len(panel.Series))
			if err != nil {
				return nil, err
			}
			panel.Series = append(panel.Series, line)
			if spans == nil {
				spans = happened
			}
		}
		if len(panel.Series) > 0 {
			days = append(days, dayView{day, template.HTML(svg.Plot{Label: "Goodput on the day " + day + ".", X: svg.Axis{Label: "seconds of the measurement",
				Format: func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }}, Panels: []svg.Panel{panel}, Spans: spans}.SVG())})
		}
	}
	return days, nil
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
