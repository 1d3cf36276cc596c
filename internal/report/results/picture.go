package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/report/svg"
)

const pictureStyle = `<style>text{font:11px system-ui,sans-serif;fill:#555}.grid{stroke:#8884}.axis{stroke:#888}` +
	`.line{fill:none;stroke-width:2}.whisker{stroke-width:1}.c0{stroke:#1b6ca8;--c:#1b6ca8}.c1{stroke:#c2571a;--c:#c2571a}` +
	`.c2{stroke:#2a8a57;--c:#2a8a57}` +
	`.c3{stroke:#8a4fbf;--c:#8a4fbf}.c4{stroke:#b3872b;--c:#b3872b}.c5{stroke:#b0305a;--c:#b0305a}` +
	`.c6{stroke:#3b8f9c;--c:#3b8f9c}.c7{stroke:#777;--c:#777}` +
	`.dot,.area,.bar{fill:var(--c)}.area.paper,.bar.paper{fill-opacity:.3}.paper{stroke-dasharray:5 4}.over{stroke:#444}` +
	`.edge{stroke:#1b6ca8;stroke-opacity:.3}.node{fill:#1b6ca8}` +
	`@media(prefers-color-scheme:dark){text{fill:#bbb}.over{stroke:#ccc}}</style>`

func embedStyle(svg string) string {
	end := strings.IndexByte(svg, '>') + 1
	return svg[:end] + pictureStyle + svg[end:]
}

// drawnLine is a line of trials, or of a document if kind is "paper".
type drawnLine struct {
	name, kind string // kind is "" or paper
	at         map[string]svg.Point
}

// drawPicture draws y= against x=, a line for each value of by=. Values of a document are dashed
// lines. If x= has names, it draws bars.
func drawPicture(rows []Row, papers []DocumentValue, w arguments) (drawPicture, about string, err error) {
	y, err := parseColumn(w.options["y"])
	if err != nil {
		return "", "", err
	}
	drawn, err := trialLines(rows, y, w)
	if err != nil {
		return "", "", err
	}
	for _, v := range papers {
		drawn = addPoint(drawn, v.Series, "paper", v.X, svg.Point{Y: v.Y / units[y.unit]})
	}
	x := w.options["x"]
	about = fmt.Sprintf("%s against %s", y.heading(), x)
	if len(papers) > 0 {
		about += ", measured and published (dashed lines, pale bars)"
	}
	return embedStyle(drawLines(drawn, y.heading(), x, about)), about, nil
}

func trialLines(rows []Row, y column, w arguments) (out []drawnLine, err error) {
	by := append(w.list("by"), w.options["x"])
	all, err := cells(rows, by)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		e, err := y.estimate(c, all, by)
		if err != nil {
			return nil, err
		}
		p := svg.Point{Y: e.Mean, Half: e.HalfWidth}
		if e.N == 0 {
			p.Y = math.NaN()
		}
		last := len(c.key) - 1
		out = addPoint(out, strings.Join(c.key[:last], " "), "", c.key[last], p)
	}
	return out, nil
}

func addPoint(to []drawnLine, name, kind, x string, p svg.Point) []drawnLine {
	i := slices.IndexFunc(to, func(l drawnLine) bool { return l.name == name && l.kind == kind })
	if i < 0 {
		i, to = len(to), append(to, drawnLine{name: name, kind: kind, at: map[string]svg.Point{}})
	}
	to[i].at[x] = p
	return to
}

func drawLines(all []drawnLine, y, x, about string) string {
	numbers, names := map[string]float64{}, []string{}
	for _, l := range all {
		for _, at := range slices.SortedFunc(maps.Keys(l.at), compareParameters) {
			if v, err := strconv.ParseFloat(at, 64); err == nil {
				numbers[at] = v
			}
			if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, at) }) {
				names = append(names, at)
			}
		}
	}
	if len(numbers) < len(names) {
		return drawBars(all, names, y, x, about)
	}
	plot := svg.Plot{Label: about, X: svg.Axis{Label: x}, Y: svg.Axis{Label: y}}
	for _, l := range all {
		s := svg.Series{Name: l.label(), Class: l.class(all), Dots: true}
		for at, p := range l.at {
			p.X = numbers[at]
			s.Points = append(s.Points, p)
		}
		slices.SortFunc(s.Points, func(a, b svg.Point) int { return cmp.Compare(a.X, b.X) })
		plot.Series = append(plot.Series, s)
	}
	return plot.SVG()
}

func drawBars(all []drawnLine, names []string, y, x, about string) string {
	b := svg.Bars{Label: about, XLabel: x, Y: svg.Axis{Label: y}, Groups: names}
	for _, l := range all {
		s := svg.BarSeries{Name: l.label(), Class: l.class(all)}
		for _, name := range names {
			bar := svg.Bar{Value: math.NaN()}
			for at, p := range l.at {
				if strings.EqualFold(at, name) {
					bar = svg.Bar{Value: p.Y, Half: p.Half}
				}
			}
			s.Values = append(s.Values, bar)
		}
		b.Series = append(b.Series, s)
	}
	return b.SVG()
}

func (l drawnLine) label() string {
	if l.kind != "" {
		return strings.TrimSpace(l.name + ", published")
	}
	return l.name
}

// class returns the same colour for a name in trials and in the document.
func (l drawnLine) class(all []drawnLine) string {
	names := []string{}
	for _, o := range all {
		if !slices.Contains(names, o.name) {
			names = append(names, o.name)
		}
	}
	return strings.TrimSpace(svg.Color(slices.Index(names, l.name)) + " " + l.kind)
}

func (f *filler) drawGraphs(rows []Row, w arguments) (string, error) {
	by := w.list("by")
	all, err := cells(rows, by)
	if err != nil {
		return "", err
	}
	var names, pictures []string
	for _, c := range all {
		svg, about, err := drawGraph(c.rows, w)
		text, err := f.addPicture(svg, about, err)
		if errors.As(err, new(notMeasuredError)) && len(by) > 0 {
			text, err = "–", nil
		}
		if err != nil || len(by) == 0 {
			return text, err
		}
		names, pictures = append(names, strings.Join(c.key, " ")), append(pictures, strings.TrimSpace(text))
	}
	var t tableLines
	t.head(names...)
	t.line(pictures...)
	return t.String(), nil
}

// drawGraph draws the mean bytes per operation between pairs of data nodes, over the trials that
// count.
func drawGraph(rows []Row, w arguments) (picture, about string, err error) {
	sums := map[string]float64{}
	valid := 0
	for _, r := range rows {
		if !r.Counts() {
			continue
		}
		valid++
		for name, v := range r.Figures {
			if pair, ok := strings.CutPrefix(name, pairPrefix); ok {
				sums[pair] += v
			}
		}
	}
	if valid == 0 || len(sums) == 0 {
		return "", "", notMeasuredError{w.step}
	}
	g := svg.Graph{}
	at := func(name string) int {
		return slices.IndexFunc(g.Nodes, func(n svg.Node) bool { return n.Name == name })
	}
	for pair := range sums {
		for _, name := range strings.Split(pair, "~") {
			if at(name) < 0 {
				g.Nodes = append(g.Nodes, svg.Node{Name: name})
			}
		}
	}
	slices.SortFunc(g.Nodes, func(a, b svg.Node) int { return strings.Compare(a.Name, b.Name) })
	least, most := math.Inf(1), 0.0
	for pair, sum := range sums {
		a, b, _ := strings.Cut(pair, "~")
		v := sum / float64(valid)
		least, most = min(least, v), max(most, v)
		g.Edges = append(g.Edges, svg.Edge{A: at(a), B: at(b), Weight: v, Tip: fmt.Sprintf("%s: %.0f B per operation", pair, v)})
	}
	slices.SortFunc(g.Edges, func(a, b svg.Edge) int { return strings.Compare(a.Tip, b.Tip) })
	about = fmt.Sprintf("traffic between data nodes: %.0f to %.0f B per operation and pair", least, most)
	g.Label = about
	return embedStyle(g.SVG()), about, nil
}

// drawOverTime draws y= over time, a line for each value of by=, of the first stored trial.
// axis=log selects a logarithmic axis, as=distribution the cumulative distribution over time.
func drawOverTime(points []Point, w arguments) (picture, about string, err error) {
	kept, err := filterPoints(points, w)
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
			if !ok { // leading gaps are skipped
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
	plot := svg.Plot{Y: svg.Axis{Label: y.heading()}}
	switch axis := w.options["axis"]; axis {
	case "":
	case "log":
		plot.Y.Scale = svg.Log
	default:
		return "", "", fmt.Errorf("axis=%s: want axis=log", axis)
	}
	for i, name := range slices.Sorted(maps.Keys(series)) {
		series[name].Class = svg.Color(i)
		plot.Series = append(plot.Series, *series[name])
	}
	about, x := y.heading()+" over time", "s"
	switch as := w.options["as"]; as {
	case "":
	case "distribution":
		about, x = y.heading()+", cumulative distribution over time", "% of the time"
		for i, s := range plot.Series {
			plot.Series[i].Points = distribute(s.Points)
		}
	default:
		return "", "", fmt.Errorf("as=%s: want as=distribution", as)
	}
	plot.Label, plot.X.Label = about, x
	return embedStyle(plot.SVG()), about, nil
}

// distribute sorts values and sets X to the percentage of points up to each. It drops gaps.
func distribute(points []svg.Point) []svg.Point {
	points = slices.DeleteFunc(points, func(p svg.Point) bool { return math.IsNaN(p.Y) })
	slices.SortFunc(points, func(a, b svg.Point) int { return cmp.Compare(a.Y, b.Y) })
	for i := range points {
		points[i].X = 100 * float64(i+1) / float64(len(points))
	}
	return points
}

func filterPoints(points []Point, w arguments) ([]Point, error) {
	rows := make([]Row, len(points))
	for i, p := range points {
		rows[i] = Row{Trial: i, Parameters: p.Parameters}
	}
	kept, err := w.filterRows(rows)
	out := make([]Point, len(kept))
	for i, r := range kept {
		out[i] = points[r.Trial]
	}
	return out, err
}
