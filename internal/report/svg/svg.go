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
