package choice

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"

	"skerry/internal/evidence/race"
	"skerry/internal/report/svg"
	"skerry/internal/run/choose"
)

// tradeOff plots the first preferred metric against another one, a point with its name for each candidate.
func tradeOff(a choose.Answer, other int) template.HTML {
	in := svg.Series{Name: "fails no need that was tried", Class: svg.Color(2), Dots: true}
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
	frontier := svg.Series{Name: "frontier: none is better in both", Class: svg.Color(0), Points: frontierOf(in.Points)}
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
