package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"skerry/internal/record"
	"skerry/internal/report/svg"
	"skerry/internal/topology"
)

// maxEdges bounds a traffic graph to its heaviest links.
const maxEdges = 400

// pair is what two nodes exchanged, both directions in the mean over trials.
type pair struct {
	a, b     string
	forth    float64 // bytes from a to b
	back     float64
	together float64
}

// pairsOf takes the mean over a cell's trials; per divides each trial.
func pairsOf(c *cell, per func(record.Trial) float64) []pair {
	sums := map[[2]string]*pair{}
	for _, t := range c.used {
		d := per(t) * float64(len(c.used))
		if d == 0 {
			continue
		}
		for _, p := range t.Traffic.Pairs {
			from, to, back := p.From, p.To, false
			if from > to {
				from, to, back = to, from, true
			}
			s := sums[[2]string{from, to}]
			if s == nil {
				s = &pair{a: from, b: to}
				sums[[2]string{from, to}] = s
			}
			n := float64(p.Bytes) / d
			if back {
				s.back += n
			} else {
				s.forth += n
			}
			s.together += n
		}
	}
	out := make([]pair, 0, len(sums))
	for _, p := range sums {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(x, y pair) int {
		return cmp.Or(cmp.Compare(y.together, x.together), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	return out[:min(len(out), maxEdges)]
}

// trafficRow is the graphs of one group.
type trafficRow struct {
	Title   string
	Caption string
	Shown   []figureView // at the smallest, the middle and the largest scale
	Between []figureView // the scales between
}

// trafficGraphs draw who exchanged how much with whom. Graphs of one group are drawn to
// one measure, so that they can be compared.
func (m *model) trafficGraphs() (rows []trafficRow) {
	per, unit := func(record.Trial) float64 { return 1 }, ""
	if !m.sameOperations() {
		per = func(t record.Trial) float64 { return float64(t.Outcomes.OK) / 1000 }
		unit = " per 1,000 operations"
	}
	for _, g := range m.groups {
		row := trafficRow{Title: g.label}
		full := 0.0
		var cells []*cell
		var pairs [][]pair
		for _, c := range g.cells {
			if p := pairsOf(c, per); len(p) > 0 {
				cells, pairs = append(cells, c), append(pairs, p)
				full = max(full, p[0].together)
			}
		}
		for i, c := range cells {
			f := m.graph(c, pairs[i], full, unit)
			if i == 0 || i == len(cells)/2 || i == len(cells)-1 {
				row.Shown = append(row.Shown, f)
			} else {
				row.Between = append(row.Between, f)
			}
		}
		if len(cells) > 0 {
			row.Caption = fmt.Sprintf("The thickest line is %s%s, both directions together.", amount(full), unit)
			rows = append(rows, row)
		}
	}
	return rows
}

func (m *model) graph(c *cell, pairs []pair, full float64, unit string) figureView {
	names, client := m.nodesOf(c, pairs)
	g := svg.Graph{Full: full, Label: "Traffic between nodes, " + m.name(c) + "."}
	if m.scales.vary() {
		g.Title = m.scales.text(c.scale)
	}
	at := map[string]int{}
	sum := map[string]float64{}
	for _, p := range pairs {
		sum[p.a] += p.together
		sum[p.b] += p.together
	}
	for i, n := range names {
		at[n] = i
		g.Nodes = append(g.Nodes, svg.Node{Name: n, Marked: client[n], Tip: fmt.Sprintf("%s: %s%s", n, amount(sum[n]), unit)})
	}
	for i := len(pairs) - 1; i >= 0; i-- { // the heaviest on top
		p := pairs[i]
		g.Edges = append(g.Edges, svg.Edge{A: at[p.a], B: at[p.b], Weight: p.together,
			Tip: fmt.Sprintf("%s – %s: %s%s (%s there, %s back)", p.a, p.b, amount(p.together), unit, amount(p.forth), amount(p.back))})
	}
	g.Label += fmt.Sprintf(" Most between %s and %s: %s%s.", pairs[0].a, pairs[0].b, amount(pairs[0].together), unit)
	return figureView{Chart: template.HTML(g.SVG())}
}

// nodesOf orders the nodes as the topology does, from west to east where its sites have
// coordinates, the clients where they stand; without a topology, by name.
func (m *model) nodesOf(c *cell, pairs []pair) (names []string, client map[string]bool) {
	client = map[string]bool{}
	known := map[string]bool{}
	if topo := m.topologyOf(c); topo != nil {
		for _, n := range ordered(topo) {
			names, known[n.Name] = append(names, n.Name), true
			client[n.Name] = n.Role == topology.Client
		}
	}
	var rest []string
	for _, p := range pairs {
		for _, n := range []string{p.a, p.b} {
			if !known[n] {
				rest, known[n] = append(rest, n), true
			}
		}
	}
	slices.Sort(rest)
	return append(names, rest...), client
}

func (m *model) topologyOf(c *cell) *topology.Topology {
	topo, err := m.dir.Topology(c.used[0].ID)
	if err != nil {
		m.notes = append(m.notes, err.Error())
	}
	return topo
}

func ordered(t *topology.Topology) []topology.Node {
	sites := slices.Clone(t.Sites)
	if !slices.ContainsFunc(sites, func(s topology.Site) bool { return !s.Located }) {
		slices.SortStableFunc(sites, func(a, b topology.Site) int { return cmp.Compare(a.Lon, b.Lon) })
	}
	rank := map[string]int{}
	for i, s := range sites {
		rank[s.Name] = i
	}
	nodes := slices.Clone(t.Nodes)
	slices.SortStableFunc(nodes, func(a, b topology.Node) int { return cmp.Compare(rank[a.Site], rank[b.Site]) })
	return nodes
}
