package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"

	"skerry/internal/record"
	"skerry/internal/report/svg"
)

// maxBins bounds the points of a timeline; longer trials have several seconds a bin.
const maxBins = 240

// busiest is how many data nodes a timeline shows one by one.
const busiest = 3

// timeline draws a trial second by second; not ok when nothing of it was recorded.
func (m *model) timeline(t record.Trial) (figureView, bool) {
	seconds, err := m.dir.Timeline(t.ID)
	if err != nil {
		m.notes = append(m.notes, err.Error())
	}
	if len(seconds) == 0 {
		return figureView{}, false
	}
	nodes, err := m.dir.Nodes(t.ID)
	if err != nil {
		m.notes = append(m.notes, err.Error())
	}
	events, err := m.dir.Events(t.ID)
	if err != nil {
		m.notes = append(m.notes, err.Error())
	}
	slices.SortFunc(seconds, func(a, b record.Second) int { return cmp.Compare(a.T, b.T) })
	first, last := seconds[0].T, seconds[len(seconds)-1].T
	size := max(1, (last-first)/maxBins+1)
	p := svg.Plot{Width: 1120, X: svg.Axis{Label: "seconds since the measurement began", Loose: true, Format: tick},
		Label:  fmt.Sprintf("Trial %d second by second: throughput by outcome, latency, CPU of nodes.", t.ID),
		Panels: []svg.Panel{outcomePanel(seconds, size), latencyPanel(seconds, size)}}
	network, err := m.dir.Network(t.ID)
	if err != nil {
		m.notes = append(m.notes, err.Error())
	}
	if len(network) > 0 {
		p.Panels = append(p.Panels, networkPanel(network, first, size))
	}
	if len(nodes) > 0 {
		p.Panels = append(p.Panels, cpuPanels(nodes, first, size)...)
	}
	if first < 0 {
		p.Spans = []svg.Span{{From: float64(first), To: 0, Name: "warm-up, not counted"}}
	}
	p.Spans = append(p.Spans, bands(events, float64(last+1))...)
	for _, e := range events {
		p.Events = append(p.Events, svg.Event{X: e.T, Tip: fmt.Sprintf("%s s: %s: %s", figure(e.T), e.Kind, e.Message)})
	}
	return figureView{Chart: template.HTML(p.SVG())}, true
}

// bins calls add for each bin of size seconds with its begin and its rows.
func bins(seconds []record.Second, size int64, add func(at float64, rows []record.Second)) {
	for len(seconds) > 0 {
		from := seconds[0].T
		n := 1
		for n < len(seconds) && seconds[n].T < from+size {
			n++
		}
		add(float64(from), seconds[:n])
		seconds = seconds[n:]
	}
}

func outcomePanel(seconds []record.Second, size int64) svg.Panel {
	stacks := []svg.Series{{Name: "ok", Class: "good"}, {Name: "failed", Class: "bad"}, {Name: "unknown", Class: "unknown"}, {Name: "dropped", Class: "dropped"}}
	any := make([]bool, len(stacks))
	bins(seconds, size, func(at float64, rows []record.Second) {
		var sums [4]int64
		length := 0.0
		for _, r := range rows {
			if length += r.Length; r.Length <= 0 { // not told
				length++
			}
			for i, n := range []int64{r.OK, r.Failed, r.Unknown, r.Dropped} {
				sums[i] += n
			}
		}
		for i, n := range sums {
			any[i] = any[i] || n > 0
			stacks[i].Points = append(stacks[i].Points, svg.Point{X: at, Y: float64(n) / length})
		}
	})
	kept := stacks[:1]
	for i := 1; i < len(stacks); i++ {
		if any[i] {
			kept = append(kept, stacks[i])
		}
	}
	return svg.Panel{Title: "Operations by outcome", Height: 150, Stacks: kept, Y: svg.Axis{Label: "ops/s", Format: tick}}
}

// latencyPanel shows, of bins of several seconds, the worst.
func latencyPanel(seconds []record.Second, size int64) svg.Panel {
	p50, p99 := svg.Series{Name: "p50", Class: svg.Color(0)}, svg.Series{Name: "p99", Class: svg.Color(2)}
	bins(seconds, size, func(at float64, rows []record.Second) {
		var a, b float64
		for _, r := range rows {
			a, b = max(a, r.ResponseP50, r.ServiceP50), max(b, r.ResponseP99, r.ServiceP99)
		}
		p50.Points = append(p50.Points, svg.Point{X: at, Y: gap(a / 1000)})
		p99.Points = append(p99.Points, svg.Point{X: at, Y: gap(b / 1000)})
	})
	return svg.Panel{Title: "Response time", Height: 130, Series: []svg.Series{p50, p99}, Y: svg.Axis{Label: "ms", Scale: svg.Log, Format: tick}}
}

// networkPanel shows the round trips between nodes, of bins of several seconds the mean of
// the means and the worst of the worst.
func networkPanel(rows []record.NetworkSecond, first, size int64) svg.Panel {
	mean, worst := svg.Series{Name: "mean", Class: svg.Color(0)}, svg.Series{Name: "worst", Class: svg.Color(2)}
	for len(rows) > 0 {
		at := first + (rows[0].T-first)/size*size
		var sum, most float64
		n := 0
		for n < len(rows) && rows[n].T < at+size {
			sum, most = sum+rows[n].Mean, max(most, rows[n].Worst)
			n++
		}
		mean.Points = append(mean.Points, svg.Point{X: float64(at), Y: sum / float64(n)})
		worst.Points = append(worst.Points, svg.Point{X: float64(at), Y: most})
		rows = rows[n:]
	}
	return svg.Panel{Title: "Round trip between nodes", Height: 110, Series: []svg.Series{mean, worst}, Y: svg.Axis{Label: "ms", Format: tick}}
}

// gap leaves a second without operations out of a logarithmic axis.
func gap(v float64) float64 {
	if v <= 0 {
		return math.NaN()
	}
	return v
}

// cpuPanels show the machine and the emulator apart from the nodes, which use far less:
// the busiest by name, the others as a quiet crowd.
func cpuPanels(rows []record.NodeSecond, first, size int64) (panels []svg.Panel) {
	use := cpuByNode(rows, first, size)
	machine := svg.Panel{Title: "CPU of the whole machine", Height: 90, Y: svg.Axis{Label: "cores", Format: tick}}
	nodes := svg.Panel{Title: "CPU of nodes", Height: 110, Y: svg.Axis{Label: "cores", Format: tick}}
	var crowd []svg.Series
	for _, u := range use {
		s := svg.Series{Name: nodeName(u.node), Points: u.points}
		switch {
		case special(u.node) != 0:
			s.Class = svg.Color(len(machine.Series))
			machine.Series = append(machine.Series, s)
		case len(nodes.Series) < busiest:
			s.Class = svg.Color(len(nodes.Series))
			nodes.Series = append(nodes.Series, s)
		default:
			s.Class, s.Quiet = "crowd", true
			crowd = append(crowd, s)
		}
	}
	nodes.Series = append(crowd, nodes.Series...) // the crowd behind
	for _, p := range []svg.Panel{machine, nodes} {
		if len(p.Series) > 0 {
			panels = append(panels, p)
		}
	}
	return panels
}

// nodeUse is one node's CPU over time.
type nodeUse struct {
	node   string
	total  float64
	points []svg.Point
}

// cpuByNode takes the mean of each bin; the machine comes first, then the busiest nodes.
func cpuByNode(rows []record.NodeSecond, first, size int64) []*nodeUse {
	type bin struct {
		node string
		at   int64
	}
	uses, counts := map[string]*nodeUse{}, map[bin]float64{}
	slices.SortStableFunc(rows, func(a, b record.NodeSecond) int { return cmp.Compare(a.T, b.T) })
	for _, r := range rows {
		u := uses[r.Node]
		if u == nil {
			u = &nodeUse{node: r.Node}
			uses[r.Node] = u
		}
		u.total += r.CPU
		b := bin{r.Node, first + (r.T-first)/size*size}
		if counts[b] == 0 {
			u.points = append(u.points, svg.Point{X: float64(b.at)})
		}
		p := &u.points[len(u.points)-1]
		p.Y = (p.Y*counts[b] + r.CPU) / (counts[b] + 1)
		counts[b]++
	}
	return slices.SortedFunc(maps.Values(uses), func(a, b *nodeUse) int {
		return cmp.Or(cmp.Compare(special(a.node), special(b.node)), cmp.Compare(b.total, a.total), cmp.Compare(a.node, b.node))
	})
}

// special orders the machine and the emulator before nodes.
func special(node string) int {
	switch node {
	case "@host":
		return -2
	case "@emulator", "@wireguard":
		return -1
	}
	return 0
}

func nodeName(node string) string {
	switch node {
	case "@host":
		return "all of it"
	case "@emulator":
		return "emulator"
	case "@wireguard":
		return "encryption"
	}
	return node
}
