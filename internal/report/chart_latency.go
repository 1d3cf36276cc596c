package report

import (
	"fmt"
	"html/template"
	"math"

	"skerry/internal/report/series"
	"skerry/internal/report/svg"
)

// smallWidth of charts that stand three in a row.
const smallWidth = 390

// percentileCurves draw p50, p95 and p99 of each group's main operation against the scale.
func (m *model) percentileCurves() (out []figureView) {
	if !m.scales.vary() {
		return nil
	}
	for _, g := range m.groups {
		curves := []svg.Series{{Name: "p50", Class: svg.Color(0), Dots: true}, {Name: "p95", Class: svg.Color(1), Dots: true}, {Name: "p99", Class: svg.Color(2), Dots: true}}
		op := ""
		for _, c := range g.cells {
			o, ok := c.main()
			if !ok {
				continue
			}
			op = o.name
			for i, us := range []float64{o.latency.P50, o.latency.P95, o.latency.P99} {
				curves[i].Points = append(curves[i].Points, svg.Point{X: c.scale, Y: us / 1000,
					Tip: fmt.Sprintf("%s, %s: %s ms", m.name(c), curves[i].Name, millis(us))})
			}
		}
		if op == "" {
			continue
		}
		p := svg.Plot{Label: "Latency percentiles of " + op + " against the scale" + of(g.label) + ".", Width: smallWidth, X: m.scaleAxis(),
			Panels: []svg.Panel{{Title: title(g.label, op), Series: curves, Y: svg.Axis{Label: "ms", Format: tick}}}}
		out = append(out, figureView{Chart: template.HTML(p.SVG())})
	}
	return out
}

// distributions draw, for each group and operation, the share of operations below a
// latency, one curve a scale. main are those of the operation there is most of.
func (m *model) distributions() (main, others []figureView) {
	for _, g := range m.groups {
		for i, op := range g.operationNames() {
			f, ok := m.distribution(g, op)
			switch {
			case !ok:
			case i == 0:
				main = append(main, f)
			default:
				others = append(others, f)
			}
		}
	}
	return main, others
}

func (g *group) operationNames() (names []string) {
	seen := map[string]bool{}
	for _, c := range g.cells {
		for _, o := range c.operations {
			if !seen[o.name] && o.count > 0 {
				seen[o.name] = true
				names = append(names, o.name)
			}
		}
	}
	return names
}

func (m *model) distribution(g *group, op string) (figureView, bool) {
	var curves []svg.Series
	for i, c := range g.cells {
		for _, o := range c.operations {
			if o.name != op || o.count == 0 {
				continue
			}
			name := op
			if m.scales.vary() {
				name = m.scales.text(c.scale)
			}
			curves = append(curves, svg.Series{Name: name, Class: svg.Color(i), Points: o.curve()})
		}
	}
	if len(curves) == 0 {
		return figureView{}, false
	}
	p := svg.Plot{Label: "Distribution of the latency of " + op + of(g.label) + ", with the slowest operations spread out.", Width: smallWidth,
		X: svg.Axis{Label: "response time, ms", Scale: svg.Log, Format: tick},
		Panels: []svg.Panel{{Title: title(g.label, op), Series: curves,
			Y: svg.Axis{Label: "share of operations that were faster", Scale: svg.Tail, Format: func(v float64) string { return fmt.Sprintf("%g%%", math.Round(v*1e7)/1e5) }}}}}
	return figureView{Chart: template.HTML(p.SVG())}, true
}

// curve is the distribution on a tail axis, to the last share that the number of operations
// resolves; where trials kept no histogram, what their percentiles tell of it.
func (o operation) curve() (points []svg.Point) {
	c := series.Curve{Tail: series.Values{0.5, 0.05, 0.01, 0.001}, US: series.Values{o.latency.P50, o.latency.P95, o.latency.P99, o.latency.P999}}
	if o.hist != nil {
		c = series.CurveOf(o.name, "response", o.hist)
	}
	for i, tail := range c.Tail {
		if tail > 0 {
			points = append(points, svg.Point{X: max(c.US[i], 1) / 1000, Y: 1 - tail})
		}
	}
	return points
}

func title(label, op string) string {
	if label == "" {
		return op
	}
	return label + ", " + op
}
