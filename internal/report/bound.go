package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"skerry/internal/record"
)

// boundWords are what bound a trial, as people are told.
var boundWords = map[string]string{"bandwidth": "bandwidth of", "node": "processors of", "machine": "this machine", "client": "the client", "database": "itself"}

// boundOf says in a few words what bound a cell: what bound most of its trials.
func boundOf(trials []record.Trial) string {
	n := map[string]int{}
	for _, t := range trials {
		if b := t.Bound; b != nil {
			word := cmp.Or(boundWords[b.By], b.By)
			if b.What != "" {
				word += " " + b.What
			}
			n[word]++
		}
	}
	if len(n) == 0 {
		return ""
	}
	words := slices.Sorted(maps.Keys(n))
	most := slices.MaxFunc(words, func(a, b string) int { return cmp.Compare(n[a], n[b]) })
	if len(words) > 1 {
		return fmt.Sprintf("%s (%d of %d)", most, n[most], len(trials))
	}
	return most
}

// boundFinding tells of the cell with the highest goodput what kept it from more.
func (m *model) boundFinding() []string {
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
	if name := m.name(best); len(m.cells) > 1 && name != "" {
		of = " of " + name
	}
	return []string{fmt.Sprintf("Throughput%s was bound by %s: %s.", of, boundOf(best.used[:1]), b.Text)}
}
