package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"skerry/internal/report/results/data"
	"skerry/internal/report/svg"
)

// style makes a picture of package svg one that stands alone, on light and dark ground.
const style = `<style>text{font:11px system-ui,sans-serif;fill:#555}.grid{stroke:#8884}.axis{stroke:#888}` +
	`.line{fill:none;stroke-width:2}.whisker{stroke-width:1}.c0{stroke:#1b6ca8;--c:#1b6ca8}.c1{stroke:#c2571a;--c:#c2571a}.c2{stroke:#2a8a57;--c:#2a8a57}` +
	`.c3{stroke:#8a4fbf;--c:#8a4fbf}.c4{stroke:#b3872b;--c:#b3872b}.c5{stroke:#b0305a;--c:#b0305a}.c6{stroke:#3b8f9c;--c:#3b8f9c}.c7{stroke:#777;--c:#777}` +
	`.dot,.key{fill:var(--c)}.paper{stroke-dasharray:5 4}@media(prefers-color-scheme:dark){text{fill:#bbb}}</style>`

// picture draws y= against x=, a line for each value of by=, with the values of a document
// beside them as broken lines.
func picture(rows []data.Row, papers []Value, w words) (picture, about string, err error) {
	y, err := parseColumn(w.options["y"])
	if err != nil {
		return "", "", err
	}
	x := w.options["x"]
	by := append(w.list("by"), x)
	all, err := cells(rows, by)
	if err != nil {
		return "", "", err
	}
	panel := svg.Panel{Y: svg.Axis{Label: y.head()}}
	for _, c := range all {
		name := strings.Join(c.key[:len(c.key)-1], " ")
		e, err := y.of(c, all, by)
		if err != nil {
			return "", "", err
		}
		at, err := strconv.ParseFloat(c.key[len(c.key)-1], 64)
		if err != nil {
			return "", "", fmt.Errorf("x=%s: %q is no number", x, c.key[len(c.key)-1])
		}
		p := svg.Point{X: at, Y: e.Mean, Half: e.HalfWidth}
		if e.N == 0 {
			p.Y = math.NaN()
		}
		add(&panel, name, "", p)
	}
	for _, v := range papers {
		at, err := strconv.ParseFloat(v.X, 64)
		if err != nil {
			return "", "", fmt.Errorf("paper=%s: %q is no number", v.Item, v.X)
		}
		add(&panel, v.Series, "paper", svg.Point{X: at, Y: v.Y / units[y.unit]})
	}
	about = fmt.Sprintf("%s against %s", y.head(), x)
	if len(papers) > 0 {
		about += ", measured (lines) and in the document (broken lines)"
	}
	p := svg.Plot{Label: about, X: svg.Axis{Label: x}, Panels: []svg.Panel{panel}}
	text := p.SVG()
	end := strings.IndexByte(text, '>') + 1
	return text[:end] + style + text[end:], about, w.only("x", "y", "by", "paper")
}

// add adds a point to the series of a name and kind; those of one name have one colour.
func add(panel *svg.Panel, name, kind string, p svg.Point) {
	class, label := "", name
	if kind != "" {
		label = strings.TrimSpace(name + ", document")
	}
	for i := range panel.Series {
		s := &panel.Series[i]
		if s.Name == label {
			s.Points = append(s.Points, p)
			return
		}
		if s.Name == name {
			class = s.Class
		}
	}
	if class == "" {
		class = svg.Color(len(panel.Series))
	}
	if kind != "" {
		class += " " + kind
	}
	panel.Series = append(panel.Series, svg.Series{Name: label, Class: class, Dots: true, Points: []svg.Point{p}})
}
