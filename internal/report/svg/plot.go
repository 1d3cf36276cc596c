package svg

import (
	"cmp"
	"math"
	"strings"
)

// Plot is lines over one pair of axes.
type Plot struct {
	// Label describes the picture in words, for screen readers.
	Label  string
	Title  string  // above the plot
	Width  float64 // default 560
	Height float64 // of the plot alone; default 210
	X, Y   Axis
	Series []Series
	// Spans shade stretches of x.
	Spans []Span
}

// Series is a sequence of points of one kind.
type Series struct {
	Name   string
	Class  string // see Color
	Points []Point
	Dots   bool // mark each point
}

// Point of a series. Half is the half-width of a whisker, 0 for none, and Up how far it reaches upwards where
// that is not as far. A Y that is no number leaves a gap. Name stands beside the point, Tip shows when the pointer rests on it.
type Point struct {
	X, Y, Half, Up float64
	Name, Tip      string
}

// Span shades from From to To.
type Span struct {
	From, To float64
	Name     string
}

const (
	leastSpan    = 1.5 // wide enough to be seen
	plotWidth    = 560.0
	plotHeight   = 210.0
	marginLeft   = 58.0
	marginRight  = 14.0
	marginBottom = 40.0
	legendLine   = 17.0
	labelRise    = 13.0 // of an axis' label over the highest tick
)

// SVG draws the plot.
func (p Plot) SVG() string {
	width := cmp.Or(p.Width, plotWidth)
	var named []entry
	var xs, ys []float64
	for _, s := range p.Series {
		named = append(named, entry{name: s.Name, class: s.Class})
		for _, pt := range s.Points {
			xs, ys = append(xs, pt.X), append(ys, pt.Y, pt.Y+cmp.Or(pt.Up, pt.Half), pt.Y-pt.Half)
		}
	}
	head := layLegend(p.Title, named, p.Y.Label != "", marginLeft, width-marginRight)
	top := 4 + head.height
	bottom := top + cmp.Or(p.Height, plotHeight)
	var c canvas
	c.begin(width, bottom+marginBottom, "plot", p.Label)
	head.draw(&c, 4)
	x, y := p.X.lay(xs, marginLeft, width-marginRight, 6), p.Y.lay(ys, bottom, top, 4)
	for _, s := range p.Spans {
		from, to := max(x.at(s.From), x.from), min(x.at(s.To), x.to)
		c.rect("span", from, top, max(to-from, leastSpan), bottom-top, s.Name)
	}
	drawY(&c, y, x.from, x.to)
	drawX(&c, x, bottom, top)
	for _, s := range p.Series {
		drawSeries(&c, s, x, y)
	}
	drawNames(&c, p.Series, x, y)
	if p.Y.Label != "" {
		c.text("label", "start", x.from-marginLeft+4, top-labelRise, p.Y.Label)
	}
	return c.end()
}

func drawY(c *canvas, y ruler, left, right float64) {
	for _, t := range y.ticks {
		at := y.at(t)
		c.line("grid", left, at, right, at)
		c.text("tick", "end", left-7, at+fontSize/3, y.write(t))
	}
}

func drawX(c *canvas, x ruler, bottom, top float64) {
	c.line("axis", x.from, bottom, x.to, bottom)
	for _, t := range x.ticks {
		at := x.at(t)
		if at < x.from-0.5 || at > x.to+0.5 {
			continue
		}
		c.line("axis", at, bottom, at, bottom+4)
		if x.Scale == Log {
			c.line("grid", at, bottom, at, top)
		}
		said, anchor := x.write(t), "middle"
		if at+textWidth(said)/2 > x.to+marginRight { // a tick at the edge would be cut
			at, anchor = x.to+marginRight, "end"
		}
		c.text("tick", anchor, at, bottom+fontSize+6, said)
	}
	if x.Label != "" {
		c.text("label", "middle", (x.from+x.to)/2, bottom+marginBottom-7, x.Label)
	}
}

func drawSeries(c *canvas, s Series, x, y ruler) {
	c.path("line "+s.Class, linePath(s.Points, x, y), s.Name)
	for _, p := range s.Points {
		if math.IsNaN(p.Y) {
			continue
		}
		px, py := x.at(p.X), y.at(p.Y)
		if p.Half > 0 {
			c.path("whisker "+s.Class, whisker(px, y.at(p.Y-p.Half), y.at(p.Y+cmp.Or(p.Up, p.Half)), 4), "")
		}
		if s.Dots {
			c.circle("dot "+s.Class, px, py, 3.5, p.Tip)
		}
	}
}

func whisker(x, low, high, arm float64) string {
	return "M" + num(x-arm) + " " + num(low) + "h" + num(2*arm) + "M" + num(x) + " " + num(low) + "V" + num(high) +
		"M" + num(x-arm) + " " + num(high) + "h" + num(2*arm)
}

func linePath(points []Point, x, y ruler) string {
	var b strings.Builder
	pen := "M"
	for _, p := range points {
		if math.IsNaN(p.Y) {
			pen = "M"
			continue
		}
		b.WriteString(pen + num(x.at(p.X)) + " " + num(y.at(p.Y)))
		pen = "L"
	}
	return b.String()
}
