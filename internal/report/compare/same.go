package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// same marks the metrics of a pair that stand there a second time under another name, so that a
// difference is told once: a service time that is the response time, throughput where all ended
// ok, and what is of a kind of event of which there was one alone.
func (p *Pair) same() {
	place := map[string]int{}
	for i, m := range p.Metrics {
		place[m.Name] = i
	}
	onlyOf := p.onlyNames()
	for i := range p.Metrics {
		m := &p.Metrics[i]
		other := ""
		switch head, last := cutLast(m.Name); {
		case m.Name == "throughput":
			other = "goodput"
		case strings.HasSuffix(head, ".service"):
			other = strings.TrimSuffix(head, "service") + last
		case strings.HasPrefix(head, "events."):
			if name, ok := onlyOf[strings.TrimPrefix(head, "events.")]; ok {
				other = "events." + name + "." + last
			}
		}
		if at, ok := place[other]; ok && slices.Equal(m.A.Values, p.Metrics[at].A.Values) && slices.Equal(m.B.Values, p.Metrics[at].B.Values) {
			m.SameAs = other
		}
	}
}

// censored tells of the leading metrics that some trials know no more of than a bound.
func (p *Pair) censored(a, b map[string]int) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	onlyOf := p.onlyNames()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		head, _ := cutLast(name)
		if _, twice := onlyOf[strings.TrimPrefix(head, "events.")]; leads(name) && !twice {
			p.Censored = append(p.Censored, fmt.Sprintf("%s was not seen to its end in %d of %d trials of A and %d of %d of B, where it took longer than it was watched.",
				name, a[name], len(p.A.trials), b[name], len(p.B.trials)))
		}
	}
}

func cutLast(name string) (head, last string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// onlyNames maps the kinds of event that have one name in all trials of both sides, another than
// their own, to it.
func (p *Pair) onlyNames() map[string]string {
	names := map[string]map[string]bool{}
	for _, s := range []Side{p.A, p.B} {
		for _, t := range s.trials {
			for _, h := range t.Events {
				if names[h.Kind] == nil {
					names[h.Kind] = map[string]bool{}
				}
				names[h.Kind][h.Name] = true
			}
		}
	}
	out := map[string]string{}
	for kind, called := range names {
		for name := range called {
			if len(called) == 1 && name != kind {
				out[kind] = name
			}
		}
	}
	return out
}

// leads tells whether a metric is shown unless all are asked for.
func leads(name string) bool {
	switch name {
	case "goodput", "throughput", "availability", "cpu.data", "traffic.total", "lost_writes":
		return true
	}
	head, last := cutLast(name)
	if strings.HasPrefix(head, "events.") {
		return slices.Contains([]string{"recover", "unresponsive", "dip"}, last)
	}
	return last == "mean" || last == "p95" || last == "p99"
}

// leastChange is the share below which a difference is too small to be told.
const leastChange = 0.005

// Sized tells whether a difference is worth a sentence: the two sides are written differently,
// differ by half a percent, and by more than Cohen calls negligible where that can be told.
func (m Metric) Sized() bool {
	switch {
	case m.Unit.Write(m.A.Mean) == m.Unit.Write(m.B.Mean), m.Change != nil && abs(*m.Change) < leastChange:
		return false
	case m.HedgesG != nil:
		return abs(*m.HedgesG) >= negligible
	}
	return true
}

func abs(v float64) float64 { return max(v, -v) }
