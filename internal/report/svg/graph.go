package svg

import "math"

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
