package svg

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Plot is a set of lines over one pair of axes.
type Plot struct {
	// Label describes the chart for screen readers.
	Label  string
	Title  string  // above the plot
	Width  float64 // default 560
	Height float64 // without legend and labels; default 210
	X, Y   Axis
	// Series is a line with optional dots.
	Series []Series
	// Spans shade intervals of x.
	Spans []Span
}

// Series is a sequence of points of one kind.
type Series struct {
	Name   string
	Class  string // see Color
	Points []Point
	Dots   bool // mark each point
}

// Point is a point of a series. Half is the half-width of a whisker, 0 for none. Up is its upper
// half if that differs. A NaN Y leaves a gap. Name is drawn next to the point, Tip is a tooltip.
type Point struct {
	X, Y, Half, Up float64
	Name, Tip      string
}

// Span shades the interval from From to To.
type Span struct {
	From, To float64
	Name     string
}

const (
	minSpanWidth = 1.5
	plotWidth    = 560.0
	plotHeight   = 210.0
	marginLeft   = 58.0
	marginRight  = 14.0
	marginBottom = 40.0
	legendLine   = 17.0
	labelRise    = 13.0 // distance of an axis label from the highest tick
)

// SVG returns the chart.
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
	head := newLegend(p.Title, named, p.Y.Label != "", marginLeft, width-marginRight)
	top := 4 + head.height
	bottom := top + cmp.Or(p.Height, plotHeight)
	var c canvas
	c.begin(width, bottom+marginBottom, "plot", p.Label)
	head.draw(&c, 4)
	x, y := p.X.fit(xs, marginLeft, width-marginRight, 6), p.Y.fit(ys, bottom, top, 4)
	for _, s := range p.Spans {
		from, to := max(x.position(s.From), x.from), min(x.position(s.To), x.to)
		c.rect("span", from, top, max(to-from, minSpanWidth), bottom-top, s.Name)
	}
	drawY(&c, y, x.from, x.to)
	drawX(&c, x, bottom, top)
	for _, s := range p.Series {
		drawSeries(&c, s, x, y)
	}
	drawPointNames(&c, p.Series, x, y)
	if p.Y.Label != "" {
		c.text("label", "start", x.from-marginLeft+4, top-labelRise, p.Y.Label)
	}
	return c.end()
}

func drawY(c *canvas, y ruler, left, right float64) {
	for _, t := range y.ticks {
		at := y.position(t)
		c.line("grid", left, at, right, at)
		c.text("tick", "end", left-7, at+fontSize/3, y.format(t))
	}
}

func drawX(c *canvas, x ruler, bottom, top float64) {
	c.line("axis", x.from, bottom, x.to, bottom)
	for _, t := range x.ticks {
		at := x.position(t)
		if at < x.from-0.5 || at > x.to+0.5 {
			continue
		}
		c.line("axis", at, bottom, at, bottom+4)
		if x.Scale == Log {
			c.line("grid", at, bottom, at, top)
		}
		said, anchor := x.format(t), "middle"
		if at+textWidth(said)/2 > x.to+marginRight { // avoid clipping at the edge
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
		px, py := x.position(p.X), y.position(p.Y)
		if p.Half > 0 {
			c.path("whisker "+s.Class, whisker(px, y.position(p.Y-p.Half), y.position(p.Y+cmp.Or(p.Up, p.Half)), 4), "")
		}
		if s.Dots {
			c.circle("dot "+s.Class, px, py, 3.5, p.Tip)
		}
	}
}

func whisker(x, low, high, arm float64) string {
	return "M" + formatCoordinate(x-arm) + " " + formatCoordinate(low) + "h" + formatCoordinate(2*arm) + "M" + formatCoordinate(x) +
		" " + formatCoordinate(low) + "V" + formatCoordinate(high) +
		"M" + formatCoordinate(x-arm) + " " + formatCoordinate(high) + "h" + formatCoordinate(2*arm)
}

func linePath(points []Point, x, y ruler) string {
	var b strings.Builder
	pen := "M"
	for _, p := range points {
		if math.IsNaN(p.Y) {
			pen = "M"
			continue
		}
		b.WriteString(pen + formatCoordinate(x.position(p.X)) + " " + formatCoordinate(y.position(p.Y)))
		pen = "L"
	}
	return b.String()
}

// drawPointNames draws the names of points on the right, or on the left if there is no room. Names
// that would overlap move down.
func drawPointNames(c *canvas, series []Series, x, y ruler) {
	type name struct {
		left, right, at float64
		text            string
	}
	var names []name
	for _, s := range series {
		for _, p := range s.Points {
			if p.Name == "" || math.IsNaN(p.Y) {
				continue
			}
			px, w := x.position(p.X), textWidth(p.Name)
			n := name{px + 8, px + 8 + w, y.position(p.Y), p.Name}
			if n.right > x.to+marginRight {
				n.left, n.right = px-8-w, px-8
			}
			names = append(names, n)
		}
	}
	slices.SortStableFunc(names, func(a, b name) int { return cmp.Compare(a.at, b.at) })
	for i := range names {
		n := &names[i]
		for _, above := range names[:i] { // from the top down, so that moved names stay apart
			if n.left < above.right && above.left < n.right && n.at-above.at < fontSize+2 {
				n.at = above.at + fontSize + 2
			}
		}
		c.text("key", "start", n.left, n.at+fontSize/3, n.text)
	}
}

// Scale maps values to distances on an axis.
type Scale int

const (
	// Scales of an axis.
	Linear Scale = iota
	Log
)

// Axis is an axis of a chart. It covers the data; a linear one also covers 0.
type Axis struct {
	Label string
	Scale Scale
	// Format writes a tick value. The default is the shortest decimal.
	Format func(float64) string
}

type ruler struct {
	Axis
	lo, hi   float64 // logarithms for Log
	from, to float64 // pixels
	ticks    []float64
}

func (a Axis) fit(values []float64, from, to float64, want int) ruler {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || a.Scale == Log && v <= 0 {
			continue
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	r := ruler{Axis: a, from: from, to: to}
	if a.Scale == Log {
		r.fitLog(lo, hi)
	} else {
		r.fitLinear(lo, hi, want)
	}
	return r
}

func (r *ruler) fitLinear(lo, hi float64, want int) {
	if lo > hi { // no data
		lo, hi = 0, 1
	}
	lo, hi = min(lo, 0), max(hi, 0)
	if lo == hi {
		hi = lo + 1
	}
	step := niceStep((hi - lo) / float64(max(1, want)))
	lo, hi = math.Floor(lo/step+1e-9)*step, math.Ceil(hi/step-1e-9)*step
	first := math.Ceil(lo/step - 1e-9)
	for i := range 3 * max(1, want) { // an upper bound, independent of rounding
		if t := (first+float64(i))*step + 0; t <= hi+step*1e-9 { // + 0 turns -0 into 0
			r.ticks = append(r.ticks, t)
		}
	}
	r.lo, r.hi = lo, hi
}

// niceStep returns the smallest of 1, 2 or 5 times a power of ten that is at least step.
func niceStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*power >= step*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func (r *ruler) fitLog(lo, hi float64) {
	if lo > hi {
		lo, hi = 1, 10
	}
	if lo == hi {
		lo, hi = lo/2, hi*2
	}
	r.lo, r.hi = math.Log10(lo), math.Log10(hi)
	margin := 0.03 * (r.hi - r.lo)
	r.lo, r.hi = r.lo-margin, r.hi+margin
	multiples := []float64{1}
	if r.hi-r.lo < 3 {
		multiples = []float64{1, 2, 5}
	}
	if r.hi-r.lo < 0.5 {
		multiples = []float64{1, 1.5, 2, 3, 4, 5, 6, 8}
	}
	for d := math.Floor(r.lo); d <= r.hi; d++ {
		for _, m := range multiples {
			if at := math.Log10(m) + d; at >= r.lo && at <= r.hi {
				r.ticks = append(r.ticks, m*math.Pow(10, d))
			}
		}
	}
}

func (r ruler) position(v float64) float64 {
	switch {
	case r.Scale == Log && v <= 0:
		v = r.lo
	case r.Scale == Log:
		v = math.Log10(v)
	}
	if r.hi == r.lo {
		return r.from
	}
	return r.from + (v-r.lo)/(r.hi-r.lo)*(r.to-r.from)
}

func (r ruler) format(v float64) string {
	if r.Format != nil {
		return r.Format(v)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
