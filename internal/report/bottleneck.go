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

// bottleneckLabels are what bound a trial, as people are told.
var bottleneckLabels = map[string]string{"bandwidth": "bandwidth of", "node": "processors of", "machine": "this machine", "client": "the client", "database": "itself"}

// bottleneckLabel says in a few words what bound a cell: what bound most of its trials.
func bottleneckLabel(trials []record.Trial) string {
	var all []string
	for _, t := range trials {
		if b := t.Bound; b != nil {
			all = append(all, strings.TrimSpace(cmp.Or(bottleneckLabels[b.By], b.By)+" "+b.What))
		}
	}
	return mostCommon(all, len(trials))
}

// mostCommon is the text that most of so many trials have, with their number where others have another.
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

// bottleneckFinding tells of the cell with the highest goodput what kept it from more.
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
	return append([]string{fmt.Sprintf("Throughput%s was bound by %s: %s.", of, bottleneckLabel(best.used[:1]), b.Text)}, latencyCauseFinding(best.used[0])...)
}

// causeLabels are what made a percentile of the response time, as people are told.
var causeLabels = map[string]string{
	bottleneck.Distance: "round trips", bottleneck.Machine: "processors", bottleneck.Client: "driver's processors", bottleneck.Node: "quota",
	bottleneck.Queue: "queue of", bottleneck.Database: "itself",
}

// latencyCauseLabel says in a few words what made the 99th percentile of a cell: what made it in most of its trials.
func latencyCauseLabel(trials []record.Trial) string {
	var all []string
	for _, t := range trials {
		if b := t.LatencyBound; b != nil {
			all = append(all, causeLabel(b.P99))
		}
	}
	return mostCommon(all, len(trials))
}

// causeLabel says in a few words what made a percentile.
func causeLabel(c record.LatencyCause) string {
	return strings.TrimSpace(cmp.Or(causeLabels[c.By], c.By) + " " + c.What)
}

// latencyCauseFinding tells of the cell with the highest goodput what made its response times.
func latencyCauseFinding(t record.Trial) []string {
	if t.LatencyBound == nil {
		return nil
	}
	var out []string
	for _, x := range []struct {
		name  string
		cause record.LatencyCause
	}{{"median", t.LatencyBound.P50}, {"99th percentile", t.LatencyBound.P99}} {
		text := fmt.Sprintf("The %s of the response time was made by %s: %s.", x.name, causeLabel(x.cause), x.cause.Text)
		if x.cause.OfMachine {
			text += " That is this machine's, and not the database's."
		}
		out = append(out, text)
	}
	for _, u := range t.LatencyBound.P99.Unknown {
		out = append(out, "Not known: "+u+".")
	}
	return out
}
