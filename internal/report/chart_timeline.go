package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"skerry/internal/record"
	"skerry/internal/report/series"
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
	drawn := series.TimelineOf(seconds, maxBins)
	p := svg.Plot{Width: 1120, X: svg.Axis{Label: "seconds since the measurement began", Loose: true, Format: tick},
		Label:  fmt.Sprintf("Trial %d second by second: throughput by outcome, latency, CPU of nodes.", t.ID),
		Panels: []svg.Panel{outcomePanel(drawn), latencyPanel(drawn)}}
	network, err := m.dir.Network(t.ID)
	if err != nil {
		m.notes = append(m.notes, err.Error())
	}
	if n := series.NetworkOf(network, maxBins); n != nil {
		p.Panels = append(p.Panels, networkPanel(n))
	}
	if n := series.NodesOf(nodes, math.MaxInt, maxBins, math.MaxInt); n != nil {
		p.Panels = append(p.Panels, cpuPanels(n)...)
	}
	if first < 0 {
		p.Spans = []svg.Span{{From: float64(first), To: 0, Name: "warm-up, not counted"}}
	}
	p.Spans = append(p.Spans, spansOf(append(series.StolenOf(seconds), series.BandsOf(events)...), float64(last+1))...)
	for _, e := range events {
		p.Events = append(p.Events, svg.Event{X: e.T, Tip: fmt.Sprintf("%s s: %s: %s", figure(e.T), e.Kind, e.Message)})
	}
	return figureView{Chart: template.HTML(p.SVG())}, true
}

// line is a series over the bins of a trial, each drawn at its middle: drawn where it begins, what
// happened in a second would stand before the event that made it.
func line(name, class string, bin int, t series.Moments, values series.Values) svg.Series {
	s := svg.Series{Name: name, Class: class, Points: make([]svg.Point, len(t))}
	for i, at := range t {
		s.Points[i] = svg.Point{X: at + float64(bin)/2, Y: values[i]}
	}
	return s
}

func outcomePanel(t *series.Timeline) svg.Panel {
	stacks := []svg.Series{line("ok", "good", t.BinS, t.T, t.OK)}
	for _, s := range []svg.Series{line("failed", "bad", t.BinS, t.T, t.Failed), line("unknown", "unknown", t.BinS, t.T, t.Unknown), line("dropped", "dropped", t.BinS, t.T, t.Dropped)} {
		if slices.ContainsFunc(s.Points, func(p svg.Point) bool { return p.Y > 0 }) {
			stacks = append(stacks, s)
		}
	}
	return svg.Panel{Title: "Operations by outcome", Height: 150, Stacks: stacks, Y: svg.Axis{Label: "ops/s", Format: tick}}
}

// latencyPanel shows response times, and service times where there are no others. A bin
// without operations is left out of the logarithmic axis.
func latencyPanel(t *series.Timeline) svg.Panel {
	worse := func(response, service series.Values) series.Values {
		out := make(series.Values, len(response))
		for i := range out {
			if out[i] = max(response[i], service[i]) / 1000; out[i] <= 0 {
				out[i] = math.NaN()
			}
		}
		return out
	}
	return svg.Panel{Title: "Response time", Height: 130, Y: svg.Axis{Label: "ms", Scale: svg.Log, Format: tick}, Series: []svg.Series{
		line("p50", svg.Color(0), t.BinS, t.T, worse(t.ResponseP50, t.ServiceP50)), line("p99", svg.Color(2), t.BinS, t.T, worse(t.ResponseP99, t.ServiceP99)),
	}}
}

// networkPanel shows the round trips between nodes.
func networkPanel(n *series.Network) svg.Panel {
	return svg.Panel{Title: "Round trip between nodes", Height: 110, Y: svg.Axis{Label: "ms", Format: tick},
		Series: []svg.Series{line("mean", svg.Color(0), n.BinS, n.T, n.MeanMS), line("worst", svg.Color(2), n.BinS, n.T, n.WorstMS)}}
}

// cpuPanels show the machine and the emulator apart from the nodes, which use far less:
// the busiest by name, the others as a quiet crowd.
func cpuPanels(n *series.Nodes) (panels []svg.Panel) {
	machine := svg.Panel{Title: "CPU of the whole machine", Height: 90, Y: svg.Axis{Label: "cores", Format: tick}}
	nodes := svg.Panel{Title: "CPU of nodes", Height: 110, Y: svg.Axis{Label: "cores", Format: tick}}
	var crowd []svg.Series
	for _, i := range byUse(n) {
		s := line(nodeName(n.Names[i]), "", n.BinS, n.T, n.Series[i].CPU)
		switch {
		case series.Own(n.Names[i]):
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

// byUse are the places of the nodes: the machine first, then those that used the most CPU.
func byUse(n *series.Nodes) []int {
	order, total := make([]int, len(n.Names)), make([]float64, len(n.Names))
	for i, s := range n.Series {
		order[i] = i
		for _, cores := range s.CPU {
			total[i] += cores
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(special(n.Names[a]), special(n.Names[b])), cmp.Compare(total[b], total[a]), cmp.Compare(n.Names[a], n.Names[b]))
	})
	return order
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
