package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"skerry/internal/report/results/data"
	"skerry/internal/report/svg"
)

// over draws y= over time, a line for each value of by=, of the first trial of each that is kept, with a gap where it
// has none; with axis=log by its magnitude, and with as=distribution how much of the time it was at most so large.
func over(points []data.Point, w words) (picture, about string, err error) {
	kept, err := whereOf(points, w)
	if err != nil {
		return "", "", err
	}
	y, err := parseColumn(w.options["y"])
	if err != nil {
		return "", "", err
	}
	trials := map[string]int{} // by name
	series := map[string]*svg.Series{}
	for _, p := range kept {
		var names []string
		for _, by := range w.list("by") {
			v, ok := p.Parameters[by]
			if !ok {
				return "", "", fmt.Errorf("trials have no parameter %q", by)
			}
			names = append(names, v)
		}
		name := strings.Join(names, " ")
		if first, ok := trials[name]; ok && first != p.Trial {
			continue
		}
		trials[name] = p.Trial
		v, ok := p.Figures[y.metric]
		if series[name] == nil {
			if !ok { // a line begins with a value
				continue
			}
			series[name] = &svg.Series{Name: name}
		}
		if !ok {
			v = math.NaN()
		}
		series[name].Points = append(series[name].Points, svg.Point{X: p.T, Y: v / units[y.unit]})
	}
	if len(series) == 0 {
		return "", "", fmt.Errorf("no trial has %q over time", y.metric)
	}
	plot := svg.Plot{Y: svg.Axis{Label: y.head()}}
	switch axis := w.options["axis"]; axis {
	case "":
	case "log":
		plot.Y.Scale = svg.Log
	default:
		return "", "", fmt.Errorf("axis=%s: there is axis=log", axis)
	}
	for i, name := range slices.Sorted(maps.Keys(series)) {
		series[name].Class = svg.Color(i)
		plot.Series = append(plot.Series, *series[name])
	}
	about, x := y.head()+" over time", "s"
	switch as := w.options["as"]; as {
	case "":
	case "distribution":
		about, x = y.head()+", how much of the time at most", "% of the time"
		for i, s := range plot.Series {
			plot.Series[i].Points = distribute(s.Points)
		}
	default:
		return "", "", fmt.Errorf("as=%s: there is as=distribution", as)
	}
	plot.Label, plot.X.Label = about, x
	return alone(plot.SVG()), about, nil
}

// distribute puts the least value first, each at the per cent of points that are no larger, and leaves gaps out.
func distribute(points []svg.Point) []svg.Point {
	points = slices.DeleteFunc(points, func(p svg.Point) bool { return math.IsNaN(p.Y) })
	slices.SortFunc(points, func(a, b svg.Point) int { return cmp.Compare(a.Y, b.Y) })
	for i := range points {
		points[i].X = 100 * float64(i+1) / float64(len(points))
	}
	return points
}

// whereOf keeps the points of trials that are as where= says.
func whereOf(points []data.Point, w words) ([]data.Point, error) {
	rows := make([]data.Row, len(points))
	for i, p := range points {
		rows[i] = data.Row{Trial: i, Parameters: p.Parameters}
	}
	kept, err := w.filter(rows)
	out := make([]data.Point, len(kept))
	for i, r := range kept {
		out[i] = points[r.Trial]
	}
	return out, err
}
