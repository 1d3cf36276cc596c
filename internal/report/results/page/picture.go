package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/report/results/data"
	"skerry/internal/report/svg"
)

// style makes a picture of package svg one that stands alone, on light and dark ground.
const style = `<style>text{font:11px system-ui,sans-serif;fill:#555}.grid{stroke:#8884}.axis{stroke:#888}` +
	`.line{fill:none;stroke-width:2}.whisker{stroke-width:1}.c0{stroke:#1b6ca8;--c:#1b6ca8}.c1{stroke:#c2571a;--c:#c2571a}.c2{stroke:#2a8a57;--c:#2a8a57}` +
	`.c3{stroke:#8a4fbf;--c:#8a4fbf}.c4{stroke:#b3872b;--c:#b3872b}.c5{stroke:#b0305a;--c:#b0305a}.c6{stroke:#3b8f9c;--c:#3b8f9c}.c7{stroke:#777;--c:#777}` +
	`.dot,.area,.bar{fill:var(--c)}.area.paper,.bar.paper{fill-opacity:.3}.paper{stroke-dasharray:5 4}.over{stroke:#444}.edge{stroke:#1b6ca8;stroke-opacity:.3}.node{fill:#1b6ca8}` +
	`@media(prefers-color-scheme:dark){text{fill:#bbb}.over{stroke:#ccc}}</style>`

func alone(svg string) string {
	end := strings.IndexByte(svg, '>') + 1
	return svg[:end] + style + svg[end:]
}

// line is what is drawn of one name: of trials, or of a document.
type line struct {
	name, kind string // kind is "" or paper
	at         map[string]svg.Point
}

// picture draws y= against x=, a line for each value of by=, with the values of a document
// beside them as broken lines; bars where x= has names.
func picture(rows []data.Row, papers []Value, w words) (picture, about string, err error) {
	y, err := parseColumn(w.options["y"])
	if err != nil {
		return "", "", err
	}
	drawn, err := ours(rows, y, w)
	if err != nil {
		return "", "", err
	}
	for _, v := range papers {
		drawn = put(drawn, v.Series, "paper", v.X, svg.Point{Y: v.Y / units[y.unit]})
	}
	x := w.options["x"]
	about = fmt.Sprintf("%s against %s", y.head(), x)
	if len(papers) > 0 {
		about += ", measured and in the document (broken lines, pale bars)"
	}
	return alone(draw(drawn, y.head(), x, about)), about, nil
}

// ours are the lines of trials.
func ours(rows []data.Row, y column, w words) (out []line, err error) {
	by := append(w.list("by"), w.options["x"])
	all, err := cells(rows, by)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		e, err := y.of(c, all, by)
		if err != nil {
			return nil, err
		}
		p := svg.Point{Y: e.Mean, Half: e.HalfWidth}
		if e.N == 0 {
			p.Y = math.NaN()
		}
		last := len(c.key) - 1
		out = put(out, strings.Join(c.key[:last], " "), "", c.key[last], p)
	}
	return out, nil
}

func put(to []line, name, kind, x string, p svg.Point) []line {
	i := slices.IndexFunc(to, func(l line) bool { return l.name == name && l.kind == kind })
	if i < 0 {
		i, to = len(to), append(to, line{name: name, kind: kind, at: map[string]svg.Point{}})
	}
	to[i].at[x] = p
	return to
}

// draw draws lines over numbers, or bars over names.
func draw(all []line, y, x, about string) string {
	numbers, names := map[string]float64{}, []string{}
	for _, l := range all {
		for _, at := range slices.SortedFunc(maps.Keys(l.at), compare) {
			if v, err := strconv.ParseFloat(at, 64); err == nil {
				numbers[at] = v
			}
			if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, at) }) {
				names = append(names, at)
			}
		}
	}
	if len(numbers) < len(names) {
		return bars(all, names, y, x, about)
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

func bars(all []line, names []string, y, x, about string) string {
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

func (l line) label() string {
	if l.kind != "" {
		return strings.TrimSpace(l.name + ", document")
	}
	return l.name
}

// class is one colour for one name, of trials and of the document.
func (l line) class(all []line) string {
	names := []string{}
	for _, o := range all {
		if !slices.Contains(names, o.name) {
			names = append(names, o.name)
		}
	}
	return strings.TrimSpace(svg.Color(slices.Index(names, l.name)) + " " + l.kind)
}
