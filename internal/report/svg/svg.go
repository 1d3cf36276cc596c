// Package svg draws charts as standalone SVG elements: line plots, grouped bars with whiskers, and
// graphs.
//
// Charts carry no colours. Marks have the classes c0 to c7 and words such as "grid", "axis",
// "label" and "span", which the page's style sheet colours for light, dark and print. All text is
// escaped. Coordinates are rounded to a tenth of a pixel.
package svg

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Colors is the number of series classes, c0, c1 ...
const Colors = 8

// Color returns the class of the i-th series.
func Color(i int) string { return "c" + strconv.Itoa(i%Colors) }

// fontSize is the size of all labels, in view box units.
const fontSize = 11.0

type canvas struct{ b strings.Builder }

func (c *canvas) begin(width, height float64, class, label string) {
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" class="chart %s" viewBox="0 0 %s %s" role="img" aria-label="%s">`,
		class, formatCoordinate(width), formatCoordinate(height), Escape(label))
}

func (c *canvas) end() string {
	c.b.WriteString("</svg>")
	return c.b.String()
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, formatCoordinate(x1), formatCoordinate(y1),
		formatCoordinate(x2), formatCoordinate(y2))
}

func (c *canvas) rect(class string, x, y, w, h float64, tip string) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, formatCoordinate(x), formatCoordinate(y),
		formatCoordinate(max(0, w)), formatCoordinate(max(0, h)))
	c.close("rect", tip)
}

func (c *canvas) circle(class string, x, y, r float64, tip string) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%s"`, class, formatCoordinate(x), formatCoordinate(y), formatCoordinate(r))
	c.close("circle", tip)
}

func (c *canvas) path(class, d, tip string) {
	fmt.Fprintf(&c.b, `<path class="%s" d="%s"`, class, d)
	c.close("path", tip)
}

// close ends an element with an optional tooltip.
func (c *canvas) close(name, tip string) {
	if tip == "" {
		c.b.WriteString("/>")
		return
	}
	fmt.Fprintf(&c.b, "><title>%s</title></%s>", Escape(tip), name)
}

// text anchors at "start", "middle" or "end".
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, formatCoordinate(x), formatCoordinate(y),
		anchor, Escape(s))
}

// formatCoordinate writes 0 for NaN and infinity, so that a chart stays valid.
func formatCoordinate(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// Escape makes text safe as the content or an attribute of an element. Invalid UTF-8 and characters
// that XML forbids become a replacement mark.
func Escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0xFFFE && r <= 0xFFFF {
			return '\uFFFD'
		}
		return r
	}, s)
	return escaper.Replace(s)
}

// textWidth estimates the width of a text.
func textWidth(s string) float64 { return 0.56 * fontSize * float64(utf8.RuneCountInString(s)) }

// shorten cuts a text to an estimated width.
func shorten(s string, width float64) string {
	n := max(1, int(width/(0.56*fontSize)))
	if r := []rune(s); len(r) > n {
		return string(r[:max(1, n-1)]) + "…"
	}
	return s
}

// legend is the head of a chart: its title and the names of its series.
type legend struct {
	title   string
	entries []entry
	height  float64
}

type entry struct {
	x, y  float64
	name  string
	class string
	box   bool // bar instead of line
}

// newLegend lays out the title and the names of the series. A single unnamed series has no entry.
func newLegend(title string, named []entry, hasLabel bool, left, right float64) legend {
	l := legend{title: title}
	if title != "" {
		l.height += legendLine
	}
	if len(named) == 1 && named[0].name == "" {
		named = nil
	}
	x, y := left, l.height
	for i, e := range named {
		e.name = shorten(e.name, right-left-24)
		w := 20 + textWidth(e.name) + 14
		if i > 0 && x+w > right+14 {
			x, y = left, y+legendLine
		}
		e.x, e.y = x, y
		l.entries = append(l.entries, e)
		x += w
	}
	if len(named) > 0 {
		l.height = y + legendLine
	}
	if hasLabel {
		l.height += labelRise
	}
	l.height += 9
	return l
}

func (l legend) draw(c *canvas, top float64) {
	if l.title != "" {
		c.text("title", "start", 4, top+fontSize, l.title)
	}
	for _, e := range l.entries {
		y := top + e.y + fontSize/2 + 2
		if e.box {
			c.rect("area "+e.class, e.x, y-4, 13, 9, "")
		} else {
			c.line("line "+e.class, e.x, y, e.x+14, y)
		}
		c.text("key", "start", e.x+19, y+fontSize/3, e.name)
	}
}

// Graph draws nodes on a circle, joined by lines as thick as their weight.
type Graph struct {
	Label string // see Plot.Label
	Nodes []Node
	Edges []Edge
}

// Node is a node of a graph.
type Node struct{ Name string }

// Edge joins Nodes[A] and Nodes[B].
type Edge struct {
	A, B   int
	Weight float64
	Tip    string
}

const (
	graphWidth    = 344.0
	graphRing     = 96.0
	maxEdgeWidth  = 9.0
	maxNamedNodes = 40
)

// SVG returns the chart.
func (g Graph) SVG() string {
	const height = 2*graphRing + 84
	heaviest := 0.0
	for _, e := range g.Edges {
		heaviest = max(heaviest, e.Weight)
	}
	var c canvas
	c.begin(graphWidth, height, "graph", g.Label)
	mid := [2]float64{graphWidth / 2, height/2 + 8}
	for _, e := range g.Edges {
		if e.A < 0 || e.B < 0 || e.A >= len(g.Nodes) || e.B >= len(g.Nodes) || e.Weight <= 0 {
			continue
		}
		ax, ay := g.nodePosition(e.A, mid)
		bx, by := g.nodePosition(e.B, mid)
		g.drawEdge(&c, e, heaviest, ax, ay, bx, by)
	}
	for i, n := range g.Nodes {
		x, y := g.nodePosition(i, mid)
		r := 5.0
		if len(g.Nodes) > maxNamedNodes {
			r = 2.5
		}
		c.circle("node", x, y, r, "")
		if len(g.Nodes) <= maxNamedNodes {
			g.drawName(&c, i, n.Name, mid)
		}
	}
	return c.end()
}

func (g Graph) drawEdge(c *canvas, e Edge, heaviest, ax, ay, bx, by float64) {
	c.b.WriteString(`<line class="edge" stroke-width="` + formatCoordinate(max(0.4, maxEdgeWidth*e.Weight/heaviest)) + `" x1="` +
		formatCoordinate(ax) + `" y1="` + formatCoordinate(ay) +
		`" x2="` + formatCoordinate(bx) + `" y2="` + formatCoordinate(by) + `"`)
	c.close("line", e.Tip)
}

func (g Graph) angle(i int) float64 {
	return 2*math.Pi*float64(i)/float64(len(g.Nodes)) - math.Pi/2
}

func (g Graph) nodePosition(i int, mid [2]float64) (x, y float64) {
	a := g.angle(i)
	return mid[0] + graphRing*math.Cos(a), mid[1] + graphRing*math.Sin(a)
}

func (g Graph) drawName(c *canvas, i int, drawName string, mid [2]float64) {
	a := g.angle(i)
	x, y := mid[0]+(graphRing+11)*math.Cos(a), mid[1]+(graphRing+13)*math.Sin(a)+fontSize/3
	anchor, room := "middle", graphWidth/2
	switch cos := math.Cos(a); {
	case cos > 0.2:
		anchor, room = "start", graphWidth-x
	case cos < -0.2:
		anchor, room = "end", x
	}
	c.text("tick", anchor, x, y, shorten(drawName, room))
}

// Bars are grouped bars with whiskers.
type Bars struct {
	Label string // see Plot.Label
	Y     Axis
	// Groups are the labels of the groups. Every series has a value for each.
	Groups []string
	XLabel string
	Series []BarSeries
}

// BarSeries is one bar in each group.
type BarSeries struct {
	Name   string
	Class  string
	Values []Bar
}

// Bar is a value with the half-width of its whisker. NaN draws nothing.
type Bar struct{ Value, Half float64 }

// SVG returns the chart.
func (b Bars) SVG() string {
	var named []entry
	var values []float64
	for _, s := range b.Series {
		named = append(named, entry{name: s.Name, class: s.Class, box: true})
		for _, v := range s.Values {
			values = append(values, v.Value, v.Value+v.Half)
		}
	}
	head := newLegend("", named, b.Y.Label != "", marginLeft, plotWidth-marginRight)
	top := 4 + head.height
	bottom := top + plotHeight
	var c canvas
	c.begin(plotWidth, bottom+marginBottom, "bars", b.Label)
	head.draw(&c, 4)
	y := b.Y.fit(values, bottom, top, 4)
	left, right := marginLeft, plotWidth-marginRight
	drawY(&c, y, left, right)
	if b.Y.Label != "" {
		c.text("label", "start", 4, top-labelRise, b.Y.Label)
	}
	b.drawGroups(&c, y, left, right, bottom)
	c.line("axis", left, bottom, right, bottom)
	return c.end()
}

func (b Bars) drawGroups(c *canvas, y ruler, left, right, bottom float64) {
	room := (right - left) / float64(max(1, len(b.Groups)))
	each := min(46, room*0.78/float64(max(1, len(b.Series))))
	for g, name := range b.Groups {
		mid := left + (float64(g)+0.5)*room
		x := mid - each*float64(len(b.Series))/2
		for _, s := range b.Series {
			if g < len(s.Values) {
				s.Values[g].draw(c, s.Class, y, x, each, bottom)
			}
			x += each
		}
		c.text("tick", "middle", mid, bottom+fontSize+6, shorten(name, room))
	}
	if b.XLabel != "" {
		c.text("label", "middle", (left+right)/2, bottom+marginBottom-7, b.XLabel)
	}
}

func (v Bar) draw(c *canvas, class string, y ruler, x, width, bottom float64) {
	if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
		return
	}
	top := y.position(v.Value)
	c.rect("bar "+class, x+width*0.06, top, width*0.88, bottom-top, "")
	if v.Half > 0 {
		c.path("whisker over", whisker(x+width/2, y.position(max(0, v.Value-v.Half)), y.position(v.Value+v.Half), min(4, width/4)), "")
	}
}
