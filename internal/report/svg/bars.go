package svg

import "math"

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
