package report

import (
	"fmt"
	"html/template"
	"math"

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
		series := []svg.Series{{Name: "p50", Class: svg.Color(0), Dots: true}, {Name: "p95", Class: svg.Color(1), Dots: true}, {Name: "p99", Class: svg.Color(2), Dots: true}}
		op := ""
		for _, c := range g.cells {
			o, ok := c.main()
			if !ok {
				continue
			}
			op = o.name
			for i, us := range []float64{o.latency.P50, o.latency.P95, o.latency.P99} {
				series[i].Points = append(series[i].Points, svg.Point{X: c.scale, Y: us / 1000,
					Tip: fmt.Sprintf("%s, %s: %s ms", m.name(c), series[i].Name, millis(us))})
			}
		}
		if op == "" {
			continue
		}
		p := svg.Plot{Label: "Latency percentiles of " + op + " against the scale" + of(g.label) + ".", Width: smallWidth, X: m.scaleAxis(),
			Panels: []svg.Panel{{Title: title(g.label, op), Series: series, Y: svg.Axis{Label: "ms", Format: tick}}}}
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
	var series []svg.Series
	for i, c := range g.cells {
		for _, o := range c.operations {
			if o.name != op || o.count == 0 {
				continue
			}
			name := op
			if m.scales.vary() {
				name = m.scales.text(c.scale)
			}
			series = append(series, svg.Series{Name: name, Class: svg.Color(i), Points: o.curve()})
		}
	}
	if len(series) == 0 {
		return figureView{}, false
	}
	p := svg.Plot{Label: "Distribution of the latency of " + op + of(g.label) + ", with the slowest operations spread out.", Width: smallWidth,
		X: svg.Axis{Label: "response time, ms", Scale: svg.Log, Format: tick},
		Panels: []svg.Panel{{Title: title(g.label, op), Series: series,
			Y: svg.Axis{Label: "share of operations that were faster", Scale: svg.Tail, Format: func(v float64) string { return fmt.Sprintf("%g%%", math.Round(v*1e7)/1e5) }}}}}
	return figureView{Chart: template.HTML(p.SVG())}, true
}

// curve samples the distribution evenly on a tail axis, to the last share that the
// number of operations resolves.
func (o operation) curve() (points []svg.Point) {
	add := func(share, us float64) {
		points = append(points, svg.Point{X: max(us, 1) / 1000, Y: share})
	}
	if o.hist == nil {
		for _, p := range []struct{ share, us float64 }{{0.5, o.latency.P50}, {0.95, o.latency.P95}, {0.99, o.latency.P99}, {0.999, o.latency.P999}} {
			add(p.share, p.us)
		}
		return points
	}
	last := -math.Log10(max(1e-5, 1/float64(max(2, o.count))))
	const steps = 80
	for i := range steps + 1 {
		share := 1 - math.Pow(10, -last*float64(i)/steps)
		add(share, float64(o.hist.ValueAtPercentile(share*100)))
	}
	return points
}

func title(label, op string) string {
	if label == "" {
		return op
	}
	return label + ", " + op
}
