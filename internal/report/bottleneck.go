package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/record"
)

var bottleneckLabels = map[string]string{"bandwidth": "bandwidth of", "node": "processors of", "machine": "this machine",
	"client": "the client", "database": "itself"}

func bottleneckLabel(trials []record.Trial) string {
	var all []string
	for _, t := range trials {
		if b := t.Bound; b != nil {
			all = append(all, strings.TrimSpace(cmp.Or(bottleneckLabels[b.By], b.By)+" "+b.What))
		}
	}
	return mostCommon(all, len(trials))
}

// mostCommon returns the most frequent text. It appends the count if the texts differ.
func mostCommon(texts []string, trials int) string {
	n := map[string]int{}
	for _, t := range texts {
		n[t]++
	}
	if len(n) == 0 {
		return ""
	}
	words := slices.Sorted(maps.Keys(n))
	most := slices.MaxFunc(words, func(a, b string) int { return cmp.Compare(n[a], n[b]) })
	if len(words) > 1 {
		return fmt.Sprintf("%s (%d of %d)", most, n[most], trials)
	}
	return most
}

func (m *model) bottleneckFinding() []string {
	var best *cell
	for _, c := range m.cells {
		if len(c.used) > 0 && c.used[0].Bound != nil && (best == nil || c.goodput().Mean > best.goodput().Mean) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	b := best.used[0].Bound
	of := ""
	if name := m.cellName(best); len(m.cells) > 1 && name != "" {
		of = " of " + name
	}
	return append([]string{fmt.Sprintf("Throughput%s was limited by %s: %s.", of, bottleneckLabel(best.used[:1]), b.Text)},
		latencyCauseFinding(best.used[0])...)
}

var causeLabels = map[string]string{
	bottleneck.Distance: "round trips", bottleneck.Machine: "processors", bottleneck.Client: "driver's processors", bottleneck.Node: "quota",
	bottleneck.Queue: "queue of", bottleneck.Database: "the database itself",
}

func latencyCauseLabel(trials []record.Trial) string {
	var all []string
	for _, t := range trials {
		if b := t.LatencyBound; b != nil {
			all = append(all, causeLabel(b.P99))
		}
	}
	return mostCommon(all, len(trials))
}

func causeLabel(c record.LatencyCause) string {
	return strings.TrimSpace(cmp.Or(causeLabels[c.By], c.By) + " " + c.What)
}

func latencyCauseFinding(t record.Trial) []string {
	if t.LatencyBound == nil {
		return nil
	}
	var out []string
	for _, x := range []struct {
		name  string
		cause record.LatencyCause
	}{{"median", t.LatencyBound.P50}, {"99th percentile", t.LatencyBound.P99}} {
		text := fmt.Sprintf("The main cause of the %s response time was %s: %s.", x.name, causeLabel(x.cause), x.cause.Text)
		if x.cause.OfMachine {
			text += " The machine causes it, not the database."
		}
		out = append(out, text)
	}
	for _, u := range t.LatencyBound.P99.Unknown {
		out = append(out, "Unknown: "+u+".")
	}
	return out
}
