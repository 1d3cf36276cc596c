package svg

// legend is the head of a chart: its title and the names of its series, in lines.
type legend struct {
	title   string
	entries []entry
	height  float64
}

type entry struct {
	x, y  float64
	name  string
	class string
	box   bool // a bar rather than a line
}

// layLegend places the title and the names of the series; a single series without a name needs none.
func layLegend(title string, named []entry, hasLabel bool, left, right float64) legend {
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
