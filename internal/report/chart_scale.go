package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"skerry/internal/evidence/stats"
	"skerry/internal/report/svg"
)

// figureView is one chart with what is said below it.
type figureView struct {
	Chart   template.HTML // from package svg, which escapes every text
	Caption string
}

// measure is a figure of cells that charts show against the scale.
type measure struct {
	what  string // "Throughput"
	unit  string // "ops/s"
	value func(*cell) stats.Estimate
	by    float64 // divides the value into the unit
}

// of is a cell's figure in the unit.
func (x measure) of(c *cell) stats.Estimate {
	e := x.value(c)
	e.Mean, e.SD, e.HalfWidth = e.Mean/x.by, e.SD/x.by, e.HalfWidth/x.by
	return e
}

func (m *model) throughputMeasure() measure {
	return measure{"Throughput", "ops/s", (*cell).goodput, 1}
}

// transferMeasure is all bytes of a trial where every trial ran the same number of
// operations, else bytes for as many operations, since a slower trial of the same length
// transfers less just for doing less.
func (m *model) transferMeasure() measure {
	if m.sameOperations() {
		return measure{"Transferred data", "MB", (*cell).traffic, 1e6}
	}
	return measure{"Transferred data", "MB per 1,000 operations", (*cell).perOperation, 1e3}
}

func (m *model) sameOperations() bool {
	seen := false
	for _, c := range m.cells {
		for _, t := range c.used {
			if t.Stopped != "operations" {
				return false
			}
			seen = true
		}
	}
	return seen
}

// panels are groups that share a chart: one panel for each workload where more than the
// workload varies, else one for all.
func (m *model) panels() (names []string, groups map[string][]*group) {
	groups = map[string][]*group{}
	for _, g := range m.groups {
		if groups[g.panel] == nil {
			names = append(names, g.panel)
		}
		groups[g.panel] = append(groups[g.panel], g)
	}
	return names, groups
}

// absolute draws a measure in its unit, normalised as a multiple of its value at the
// largest scale.
func (m *model) absolute(x measure) []figureView {
	if !m.scales.vary() {
		return m.bars(x)
	}
	return m.overScale(x.what, x.unit, x.of)
}

func (m *model) normalised(x measure) []figureView {
	if !m.scales.vary() {
		return nil
	}
	top := m.scales.told(m.scales.largest())
	return m.overScale("Normalised "+lower(x.what), "multiple of "+top, func(c *cell) stats.Estimate { return m.relative(c, x.value) })
}

func (m *model) overScale(what, unit string, value func(*cell) stats.Estimate) (out []figureView) {
	names, groups := m.panels()
	for _, name := range names {
		if !measured(groups[name]) {
			continue
		}
		p := svg.Plot{Label: what + " against the scale" + of(name) + ".", X: m.scaleAxis()}
		panel := svg.Panel{Title: name, Y: svg.Axis{Label: unit, Format: tick}}
		for i, g := range groups[name] {
			s := svg.Series{Name: g.seriesName(), Class: svg.Color(i), Dots: true}
			for _, c := range g.cells {
				e := value(c)
				if len(c.used) == 0 || e.N == 0 {
					s.Points = append(s.Points, svg.Point{X: c.scale, Y: math.NaN()})
					continue
				}
				s.Points = append(s.Points, svg.Point{X: c.scale, Y: e.Mean, Half: e.HalfWidth, Tip: m.tip(c, e, unit)})
			}
			p.Label += " " + describe(g, m, value, unit)
			panel.Series = append(panel.Series, s)
		}
		p.Panels = []svg.Panel{panel}
		out = append(out, figureView{Chart: template.HTML(p.SVG())})
	}
	return out
}

func measured(groups []*group) bool {
	return slices.ContainsFunc(groups, func(g *group) bool {
		return slices.ContainsFunc(g.cells, func(c *cell) bool { return len(c.used) > 0 })
	})
}

// describe says a series in words, for those who cannot see the chart.
func describe(g *group, m *model, value func(*cell) stats.Estimate, unit string) string {
	first, last := g.ends()
	if first == nil {
		return ""
	}
	a, b := value(first), value(last)
	name := g.seriesName()
	if name != "" {
		name += ": "
	}
	return fmt.Sprintf("%s%s %s at %s, %s at %s.", name, figure(a.Mean), unit, m.scales.told(first.scale), figure(b.Mean), m.scales.told(last.scale))
}

func (m *model) tip(c *cell, e stats.Estimate, unit string) string {
	s := m.name(c) + ": " + interval(e) + " " + unit
	if c.weak {
		s += " (suspect)"
	}
	return s
}

// seriesName is what tells a group from others of its panel.
func (g *group) seriesName() string {
	if g.panel != "" {
		return g.rest
	}
	return g.label
}

func (m *model) scaleAxis() svg.Axis {
	lo, hi := m.scales.values[0], m.scales.largest()
	margin := (hi - lo) * 0.06
	return svg.Axis{Label: "multiple of the distances", Loose: true, Min: lo - margin, Max: hi + margin, Ticks: m.scales.values, Format: m.scales.text}
}

// bars stand where there is no scale to draw against.
func (m *model) bars(x measure) []figureView {
	if !measured(m.groups) {
		return nil
	}
	b := svg.Bars{Label: x.what + ".", Y: svg.Axis{Label: x.unit, Format: tick}}
	s := svg.BarSeries{Class: svg.Color(0)}
	for _, g := range m.groups {
		c := g.cells[0]
		b.Groups = append(b.Groups, g.label)
		if len(c.used) == 0 {
			s.Values = append(s.Values, svg.Bar{Value: math.NaN()})
			continue
		}
		e := x.of(c)
		s.Values = append(s.Values, svg.Bar{Value: e.Mean, Half: e.HalfWidth, Weak: c.weak, Tip: m.tip(c, e, x.unit)})
		b.Label += fmt.Sprintf(" %s: %s %s.", g.label, figure(e.Mean), x.unit)
	}
	b.Series = []svg.BarSeries{s}
	return []figureView{{Chart: template.HTML(b.SVG())}}
}

func of(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

func lower(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]|0x20) + s[1:]
}
