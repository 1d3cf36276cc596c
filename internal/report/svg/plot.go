package svg

import (
	"cmp"
	"math"
	"strings"
)

// Plot is one or more panels, one above the other, over one x axis.
type Plot struct {
	// Label says in words what is to be seen, for those who cannot see it.
	Label  string
	Width  float64 // default 560
	X      Axis
	Panels []Panel
	// Spans shade stretches of x in every panel, Events mark points of it.
	Spans  []Span
	Events []Event
}

// Panel is one y axis and what is drawn against it.
type Panel struct {
	Title  string // in words, above the panel
	Height float64
	Y      Axis
	Series []Series
	// Stacks are areas, each on top of the one before.
	Stacks []Series
}

// Series is a sequence of points of one kind.
type Series struct {
	Name   string
	Class  string // see Color
	Points []Point
	// Dots marks each point. Quiet keeps the series out of the legend.
	Dots, Quiet bool
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
	// Class of a stretch that looks otherwise, "" for the usual.
	Class string
}

// Event is something that happened at X.
type Event struct {
	X   float64
	Tip string
}

const (
	leastSpan    = 1.5 // wide enough to be seen
	plotWidth    = 560.0
	panelHeight  = 210.0
	marginLeft   = 58.0
	marginRight  = 14.0
	marginBottom = 40.0
	legendLine   = 17.0
	panelGap     = 26.0
	labelRise    = 13.0 // of an axis' label over the highest tick
)

// SVG draws the plot.
func (p Plot) SVG() string {
	width := or(p.Width, plotWidth)
	heads := make([]legend, len(p.Panels))
	height := 4.0
	for i, panel := range p.Panels {
		heads[i] = layLegend(panel, marginLeft, width-marginRight)
		height += heads[i].height + or(panel.Height, panelHeight) + panelGap
	}
	height += marginBottom - panelGap
	var c canvas
	c.begin(width, height, "plot", p.Label)
	x := p.X.lay(p.xs(), marginLeft, width-marginRight, 6)
	y := 4.0
	for i, panel := range p.Panels {
		heads[i].draw(&c, y)
		y += heads[i].height
		h := or(panel.Height, panelHeight)
		p.panel(&c, panel, x, y, y+h, i == len(p.Panels)-1)
		y += h + panelGap
	}
	return c.end()
}

func (p Plot) xs() (xs []float64) {
	for _, panel := range p.Panels {
		for _, s := range append(panel.Series[:len(panel.Series):len(panel.Series)], panel.Stacks...) {
			for _, pt := range s.Points {
				xs = append(xs, pt.X)
			}
		}
	}
	return xs
}

func (p Plot) panel(c *canvas, panel Panel, x ruler, top, bottom float64, last bool) {
	stacked := stack(panel.Stacks)
	y := panel.Y.lay(ys(panel.Series, stacked), bottom, top, 4)
	for _, s := range p.Spans {
		from, to := max(x.at(s.From), x.from), min(x.at(s.To), x.to)
		c.rect(cmp.Or(s.Class, "span"), from, top, max(to-from, leastSpan), bottom-top, s.Name)
	}
	drawY(c, y, x.from, x.to)
	drawX(c, x, bottom, top, last)
	for i, s := range stacked {
		var below []Point
		if i > 0 {
			below = stacked[i-1].Points
		}
		c.path("area "+s.Class, areaPath(s.Points, below, x, y), s.Name)
	}
	for _, s := range panel.Series {
		drawSeries(c, s, x, y)
	}
	drawNames(c, panel.Series, x, y)
	for _, e := range p.Events {
		at := x.at(e.X)
		if at < x.from-0.5 || at > x.to+0.5 {
			continue
		}
		c.path("event", "M"+num(at)+" "+num(top)+"V"+num(bottom), e.Tip)
	}
	if panel.Y.Label != "" {
		c.text("label", "start", x.from-marginLeft+4, top-labelRise, panel.Y.Label)
	}
}

func ys(series, stacked []Series) (ys []float64) {
	for _, s := range append(series[:len(series):len(series)], stacked...) {
		for _, p := range s.Points {
			ys = append(ys, p.Y, p.Y+cmp.Or(p.Up, p.Half), p.Y-p.Half)
		}
	}
	return ys
}

// stack adds each series to the one before; all have the same x.
func stack(series []Series) []Series {
	out := make([]Series, len(series))
	for i, s := range series {
		points := make([]Point, len(s.Points))
		copy(points, s.Points)
		for k := range points {
			if math.IsNaN(points[k].Y) {
				points[k].Y = 0
			}
			if i > 0 && k < len(out[i-1].Points) {
				points[k].Y += out[i-1].Points[k].Y
			}
		}
		s.Points = points
		out[i] = s
	}
	return out
}

func drawY(c *canvas, y ruler, left, right float64) {
	for _, t := range y.ticks {
		at := y.at(t)
		c.line("grid", left, at, right, at)
		c.text("tick", "end", left-7, at+fontSize/3, y.write(t))
	}
}

func drawX(c *canvas, x ruler, bottom, top float64, last bool) {
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
		if last {
			said, anchor := x.write(t), "middle"
			if at+textWidth(said)/2 > x.to+marginRight { // a tick at the edge would be cut
				at, anchor = x.to+marginRight, "end"
			}
			c.text("tick", anchor, at, bottom+fontSize+6, said)
		}
	}
	if last && x.Label != "" {
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

// areaPath encloses what lies between points and below; no below is the axis.
func areaPath(points, below []Point, x, y ruler) string {
	if len(points) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(linePath(points, x, y))
	for i := len(points) - 1; i >= 0; i-- {
		base := y.at(0)
		if below != nil {
			base = y.at(below[i].Y)
		}
		b.WriteString("L" + num(x.at(points[i].X)) + " " + num(base))
	}
	b.WriteString("Z")
	return b.String()
}

func or(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}
