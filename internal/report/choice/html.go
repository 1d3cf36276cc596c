package choice

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
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

//go:embed page.html
var page string

//go:embed style.css
var style string

type view struct {
	Answer choose.Answer
	// First is the first sentence of the answer, Then the rest.
	First, Then string
	Basis       string
	Needs       []string
	Rows        []row
	Take        *setup
	// TradeOffs plot the first preferred metric against each of the others.
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

type shownFigure struct {
	Text   string
	Places []string
}

type setup struct {
	choose.Verdict
	Settings []string
}

type cell struct{ State, Class, Evidence string }

type dayView struct {
	Name  string
	Chart template.HTML
}

type fileView struct{ Who, Day, File, Runs string }

// HTML writes a self-contained page. dir is the folder of the choice, with its runs.
func HTML(w io.Writer, a choose.Answer, dir string) error {
	t, err := template.New("choice").Funcs(template.FuncMap{"style": func() template.CSS {
		return report.Style() +
			template.CSS(style)
	}}).Parse(page)
	if err != nil {
		return fmt.Errorf("parse answer page: %w", err)
	}
	v := view{Answer: a, Basis: Basis(a), Needs: distinctNeeds(a)}
	v.First = a.Sentence
	if first, then, more := strings.Cut(a.Sentence, ". "); more {
		v.First, v.Then = first+".", then
	}
	for _, x := range a.Candidates {
		r := row{Verdict: x, Chance: wins(x)}
		for i, name := range a.Prefer {
			f := shownFigure{Text: formatPreferred(x, name)}
			for _, p := range x.Places {
				if i == 0 {
					f.Places = append(f.Places, strings.TrimSuffix(p.Name, "."+name)+" "+p.String())
				}
			}
			r.Shown = append(r.Shown, f)
		}
		for _, need := range v.Needs {
			r.Cells = append(r.Cells, newCell(x, need))
		}
		v.Rows = append(v.Rows, r)
		for _, day := range sortedKeys(x.Files) {
			v.Files = append(v.Files, fileView{x.Label, day, x.Files[day], fmt.Sprint(len(x.Runs[day]), " in ", filepath.Dir(x.Runs[day][0]))})
		}
	}
	v.Take = newSetup(a)
	for i := 1; i < len(a.Prefer); i++ {
		if picture := tradeOff(a, i); picture != "" {
			v.TradeOffs = append(v.TradeOffs, picture)
		}
	}
	if v.Days, err = drawBadDays(a, dir); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(b, v), b.Flush()); err != nil {
		return fmt.Errorf("write answer page: %w", err)
	}
	return nil
}

func distinctNeeds(a choose.Answer) (needs []string) {
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			if !slices.Contains(needs, n.Text) {
				needs = append(needs, n.Text)
			}
		}
	}
	return needs
}

func newCell(v choose.Verdict, need string) cell {
	a := assessNeed(v, need)
	class := map[string]string{choose.Met: "good", choose.Undecided: "busy", choose.NotMeasured: "busy", choose.NotMet: "bad"}
	return cell{State: a.state, Class: class[a.state], Evidence: a.evidence}
}

func newSetup(a choose.Answer) *setup {
	if len(a.Candidates) == 0 || a.Candidates[0].Out != "" {
		return nil
	}
	t := &setup{Verdict: a.Candidates[0]}
	for _, name := range choose.OptionNames(t.Candidate) {
		t.Settings = append(t.Settings, fmt.Sprintf("%s: %v", name, t.Options[name]))
	}
	return t
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

var nan = math.NaN()

func trialCourse(d *record.Dir, label string, i int) (line svg.Series, spans []svg.Span, err error) {
	line = svg.Series{Name: label, Class: svg.Color(i)}
	if len(d.Summary.Trials) == 0 {
		return line, nil, nil
	}
	t := d.Summary.Trials[0]
	seconds, err := d.Timeline(t.ID)
	if err != nil {
		return line, nil, fmt.Errorf("read timeline of %s: %w", label, err)
	}
	for _, x := range seconds {
		if x.T >= 0 && x.Length > 0 {
			line.Points = append(line.Points, svg.Point{X: float64(x.T), Y: float64(x.OK) / x.Length})
		}
	}
	for _, h := range t.Events {
		if h.RevertedS != nil {
			spans = append(spans, svg.Span{From: h.AtS, To: *h.RevertedS, Name: h.Name})
		}
	}
	return line, spans, nil
}

const maxDrawn = 3

func drawBadDays(a choose.Answer, dir string) (days []dayView, err error) {
	for _, day := range a.Days[1:] {
		short := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
		plot := svg.Plot{Label: "Goodput on the day " + day + ".", X: svg.Axis{Label: "seconds of the measurement", Format: short},
			Y: svg.Axis{Label: "ops/s", Format: short}}
		for _, v := range a.Candidates {
			if len(v.Runs[day]) == 0 || len(plot.Series) == maxDrawn {
				continue
			}
			d, err := record.Open(filepath.Join(dir, v.Runs[day][0]))
			if err != nil {
				return nil, fmt.Errorf("read bad day of %s: %w", v.Label, err)
			}
			line, happened, err := trialCourse(d, v.Label, len(plot.Series))
			if err != nil {
				return nil, err
			}
			plot.Series = append(plot.Series, line)
			if plot.Spans == nil {
				plot.Spans = happened
			}
		}
		if len(plot.Series) > 0 {
			days = append(days, dayView{day, template.HTML(plot.SVG())})
		}
	}
	return days, nil
}

// tradeOff plots the first preferred metric against another one, with a named point for each
// candidate.
func tradeOff(a choose.Answer, other int) template.HTML {
	in := svg.Series{Name: "meets all needs tested", Class: svg.Color(2), Dots: true}
	out := svg.Series{Name: "fails a need", Class: svg.Color(1), Dots: true}
	for _, v := range a.Candidates {
		x, hasX := figureOf(v, a.Prefer[other])
		y, hasY := figureOf(v, a.Prefer[0])
		if !hasX || !hasY {
			continue
		}
		p := svg.Point{X: x.Mean, Y: y.Mean, Name: v.Label, Tip: v.Label + ": " + y.String() + ", " + x.String()}
		if y.HasInterval() {
			p.Half, p.Up = y.Mean-y.Low, y.High-y.Mean
		}
		if v.Out == race.Failed {
			out.Points = append(out.Points, svg.Point{X: p.X, Y: nan}, p, svg.Point{X: p.X, Y: nan})
		} else {
			in.Points = append(in.Points, p)
		}
	}
	if len(in.Points)+len(out.Points) < 2 {
		return ""
	}
	frontier := svg.Series{Name: "frontier: no other is better in both", Class: svg.Color(0), Points: paretoFront(in.Points)}
	var lone []svg.Point
	for _, p := range in.Points {
		lone = append(lone, svg.Point{X: p.X, Y: nan}, p, svg.Point{X: p.X, Y: nan})
	}
	in.Points = lone
	unit := func(i int) func(float64) string {
		return func(v float64) string {
			for _, c := range a.Candidates {
				if f, ok := figureOf(c, a.Prefer[i]); ok {
					return f.Unit.Format(v)
				}
			}
			return strconv.FormatFloat(v, 'g', 3, 64)
		}
	}
	series := slices.DeleteFunc([]svg.Series{frontier, in, out}, func(s svg.Series) bool { return len(s.Points) == 0 })
	return template.HTML(svg.Plot{Label: a.Prefer[0] + " against " + a.Prefer[other] + ", a point a candidate.", Width: 900, Height: 300,
		X: svg.Axis{Label: a.Prefer[other], Format: unit(other)}, Y: svg.Axis{Label: a.Prefer[0], Format: unit(0)}, Series: series}.SVG())
}

func figureOf(v choose.Verdict, name string) (choose.Figure, bool) {
	i := slices.IndexFunc(v.Figures, func(f choose.Figure) bool { return f.Name == name })
	if i < 0 {
		return choose.Figure{}, false
	}
	return v.Figures[i], true
}

func paretoFront(points []svg.Point) (best []svg.Point) {
	for _, p := range points {
		if !slices.ContainsFunc(points, func(o svg.Point) bool { return o.X <= p.X && o.Y <= p.Y && (o.X < p.X || o.Y < p.Y) }) {
			best = append(best, svg.Point{X: p.X, Y: p.Y})
		}
	}
	slices.SortFunc(best, func(a, b svg.Point) int { return cmp.Compare(a.X, b.X) })
	return best
}
