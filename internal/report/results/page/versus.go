package page

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/report"
	"skerry/internal/report/results/data"
)

// dealt is the seed of permutation tests, as skerry compare has it by default.
const dealt = 1

// versus sets two values of the parameter by= (between=A,B) side by side in each cell of rows=: the figure of=, Hedges' g as the
// documents have it and with the correction for few repetitions, positive where it is higher in B, and the p of a
// permutation test of the means. paper= is a document's table of effect sizes, whose g is recomputed beside ours.
func versus(rows []data.Row, papers []Value, w words) (string, error) {
	of, err := parseColumn(w.options["of"])
	if err != nil {
		return "", err
	}
	keys, sides := w.list("rows"), w.list("between")
	if len(keys) == 0 || len(sides) != 2 || w.options["by"] == "" {
		return "", fmt.Errorf("it needs of=METRIC, rows=PARAMETER,PARAMETER, by=PARAMETER and between=A,B")
	}
	all, err := cells(rows, keys)
	if err != nil {
		return "", err
	}
	printed, _, at := By(papers)
	head := append(keys[:len(keys):len(keys)], of.head()+", "+sides[0], of.head()+", "+sides[1], "g", "g, corrected", "p")
	if len(papers) > 0 {
		head = append(head, "document's g, recomputed")
	}
	var t lines
	t.head(head...)
	for _, c := range all {
		var values [2][]float64
		var means [2]stats.Estimate
		for i, side := range sides {
			here, err := w.with(w.options["by"], side).filter(c.rows)
			if err != nil && !errors.As(err, new(NotYet)) {
				return "", err
			}
			values[i] = of.values(cell{rows: here})
			means[i] = stats.Of(values[i])
		}
		e, p := stats.EffectOf(means[0], means[1]), stats.PermutationTest(values[0], values[1], dealt)
		fields := append(c.key[:len(c.key):len(c.key)], report.Interval(means[0]), report.Interval(means[1]),
			decimals(2, e.Uncorrected, e.HasHedges), decimals(2, e.Hedges, e.HasHedges), decimals(3, p.P, p.OK))
		if len(papers) > 0 {
			i := slices.IndexFunc(at, func(x string) bool { return strings.EqualFold(x, c.key[len(c.key)-1]) })
			fields = append(fields, decimals(2, EffectAt(printed, at[max(0, i)]).Uncorrected, i >= 0))
		}
		t.line(fields...)
	}
	return t.String(), nil
}

// decimals writes a number with so many, and a dash where there is none.
func decimals(digits int, v float64, known bool) string {
	if !known {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
