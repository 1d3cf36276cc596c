package babel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"time"

	"skerry/internal/lab/overlay"
)

// unreachable is the metric at which babeld considers a route unreachable.
const unreachable = 65535

// costs are babeld's link costs for our configuration: its neighbour_rttcost, with the same integer arithmetic in
// microseconds.
type costs struct{ rx, min, max, penalty int64 }

var setting = regexp.MustCompile(`(rxcost|rtt-min|rtt-max|max-rtt-penalty) ([0-9.]+)`)

// readCosts parses a configuration like babeld: times are in ms with three decimals.
func readCosts(t *testing.T, text string) costs {
	t.Helper()
	read := map[string]int64{}
	for _, m := range setting.FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if m[1] == "rtt-min" || m[1] == "rtt-max" {
			v *= 1000
		}
		read[m[1]] = int64(math.Round(v))
	}
	c := costs{read["rxcost"], read["rtt-min"], read["rtt-max"], read["max-rtt-penalty"]}
	if len(read) != 4 || c.rx < 1 || c.min < 1 || c.max <= c.min || c.penalty < 1 || c.penalty > 65535 {
		t.Fatalf("babeld would refuse or replace these: %+v in\n%s", c, text)
	}
	return c
}

func (c costs) of(rtt time.Duration) int64 {
	us := rtt.Microseconds()
	switch {
	case us <= c.min:
		return c.rx
	case us > c.max:
		return c.rx + c.penalty
	}
	return c.rx + c.penalty*(us-c.min)/(c.max-c.min)
}

// graph holds the links of a random topology by the indices of their ends.
type graph struct {
	name  string
	nodes int
	links []overlay.Link
	ends  [][2]int
}

func (g *graph) add(a, b int, rtt time.Duration) {
	g.links = append(g.links, overlay.Link{A: strconv.Itoa(a), B: strconv.Itoa(b), Latency: rtt / 2})
	g.ends = append(g.ends, [2]int{a, b})
}

// shortest is Dijkstra's algorithm from one node: the cost of the cheapest path to each other node, and the round trip
// on that path.
func (g *graph) shortest(from int, cost func(link int) int64) (total []int64, rtt []time.Duration) {
	total, rtt = make([]int64, g.nodes), make([]time.Duration, g.nodes)
	done := make([]bool, g.nodes)
	for i := range total {
		total[i] = math.MaxInt64
	}
	total[from] = 0
	for range g.nodes {
		at := -1
		for i := range total {
			if !done[i] && total[i] < math.MaxInt64 && (at < 0 || total[i] < total[at]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		done[at] = true
		for i, e := range g.ends {
			to := e[0] + e[1] - at
			if e[0] != at && e[1] != at {
				continue
			}
			if c := total[at] + cost(i); c < total[to] {
				total[to], rtt[to] = c, rtt[at]+2*g.links[i].Latency
			}
		}
	}
	return total, rtt
}

// randomGraph places sites at random in a square with sides of span, some of them in clusters like the zones of a
// region. It links them fully, to their nearest neighbours, or as a ring. A link is up to half longer than the straight
// line.
func randomGraph(seed uint64) *graph {
	r := rand.New(rand.NewPCG(seed, 1))
	spans := []time.Duration{3 * time.Millisecond, 20 * time.Millisecond, 120 * time.Millisecond, 300 * time.Millisecond,
		900 * time.Millisecond}
	shapes := []string{"full", "near", "ring", "clusters"}
	span, shape := spans[seed%5], shapes[seed/5%4]
	g := &graph{nodes: 3 + r.IntN(22)}
	g.name = fmt.Sprintf("%d: %s, %d nodes, %v", seed, shape, g.nodes, span)
	x, y := make([]float64, g.nodes), make([]float64, g.nodes)
	for i := range g.nodes {
		x[i], y[i] = r.Float64(), r.Float64()
		if shape == "clusters" && i >= 3 {
			x[i], y[i] = x[i%3]+0.01*r.Float64(), y[i%3]+0.01*r.Float64()
		}
	}
	near := func(i, j int) bool {
		closer := 0
		for k := range g.nodes {
			if k != i && math.Hypot(x[i]-x[k], y[i]-y[k]) < math.Hypot(x[i]-x[j], y[i]-y[j]) {
				closer++
			}
		}
		return closer < 3
	}
	for i := range g.nodes {
		for j := i + 1; j < g.nodes; j++ {
			next := j == i+1 || i == 0 && j == g.nodes-1 // a ring, so that all are joined
			if !next && (shape == "ring" || shape == "near" && !near(i, j) && !near(j, i)) {
				continue
			}
			far := math.Hypot(x[i]-x[j], y[i]-y[j]) / math.Sqrt2 * (1 + 0.5*r.Float64())
			g.add(i, j, time.Duration(far*float64(span)).Truncate(time.Microsecond)+10*time.Microsecond)
		}
	}
	return g
}

// worstStretch returns the maximum excess of the round trip on babeld's path over the shortest one, for excesses above
// 1 %.
func worstStretch(t *testing.T, g *graph) (worst time.Duration) {
	t.Helper()
	c := readCosts(t, formatConfig("10.0.0.1", g.links, rttSpan(g.links), Options{}))
	for from := range g.nodes {
		metric, got := g.shortest(from, func(i int) int64 { return c.of(2 * g.links[i].Latency) })
		best, _ := g.shortest(from, func(i int) int64 { return int64(2 * g.links[i].Latency) })
		for to := range g.nodes {
			if metric[to] >= unreachable {
				t.Errorf("%s: the route from %d to %d, %v long, has the metric %d: unreachable", g.name, from, to, time.Duration(best[to]), metric[to])
			}
			if d := got[to] - time.Duration(best[to]); float64(d) > 0.01*float64(best[to]) {
				worst = max(worst, d)
			}
		}
	}
	return worst
}

// Shortest paths by babeld's costs for our configuration are at most 1 % or 0.1 ms longer than the shortest ones by the
// links' round trips.
func TestShortestPaths(t *testing.T) {
	const allowed = 100 * time.Microsecond
	triangle := &graph{name: "triangle", nodes: 3}
	triangle.add(0, 1, 1260*time.Microsecond)
	triangle.add(1, 2, 2570*time.Microsecond)
	triangle.add(0, 2, 3230*time.Microsecond)
	graphs := []*graph{triangle}
	for seed := range uint64(100) {
		graphs = append(graphs, randomGraph(seed))
	}
	worst := time.Duration(0)
	for _, g := range graphs {
		d := worstStretch(t, g)
		if d > allowed {
			t.Errorf("%s: a path is %v longer than the shortest", g.name, d)
		}
		worst = max(worst, d)
	}
	t.Logf("%d topologies: beyond 1 %%, the worst path is %v longer than the shortest", len(graphs), worst)
}

// A ring stays connected around a failed link, and a very slow link leaves its nodes reachable.
func TestMetricsStayFinite(t *testing.T) {
	for _, rtt := range []time.Duration{200 * time.Microsecond, 20 * time.Millisecond, 300 * time.Millisecond} {
		g := &graph{nodes: 24}
		for i := range g.nodes {
			g.add(i, (i+1)%g.nodes, rtt)
		}
		c := readCosts(t, formatConfig("10.0.0.1", g.links, rttSpan(g.links), Options{}))
		around := int64(g.nodes-2)*c.of(rtt) + c.of(rtt)
		slow := int64(g.nodes/2-1)*c.of(rtt) + c.of(time.Minute)
		if around >= unreachable || slow >= unreachable {
			t.Errorf("ring of %v: the metric around the ring is %d, over a link of one minute %d", rtt, around, slow)
		}
	}
}
