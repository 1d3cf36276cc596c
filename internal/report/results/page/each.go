package page

import (
	"maps"
	"slices"
	"strings"

	"skerry/internal/report/results/data"
)

// each makes of a trial a row for each NAME of its figures PREFIX.NAME.FIGURE: the name is a parameter called PREFIX
// then, and the figure is called FIGURE. each=change has a row for each node that left or returned.
func each(rows []data.Row, prefix string) (out []data.Row) {
	if prefix == "" {
		return rows
	}
	for _, r := range rows {
		of := map[string]map[string]float64{}
		for figure, v := range r.Figures {
			rest, ok := strings.CutPrefix(figure, prefix+".")
			name, figure, whole := strings.Cut(rest, ".")
			if !ok || !whole {
				continue
			}
			if of[name] == nil {
				of[name] = map[string]float64{}
			}
			of[name][figure] = v
		}
		for _, name := range slices.Sorted(maps.Keys(of)) {
			one := r
			one.Parameters, one.Figures = maps.Clone(r.Parameters), of[name]
			one.Parameters[prefix] = name
			out = append(out, one)
		}
	}
	return out
}
