package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/report"
)

// renderRanks compares the values of a document (paper=) with ours (of=), each with its rank, the
// smallest first. The item as= maps each label of the document to a value of the parameter by=.
// pairs= lists comparisons: WHERE~SERIES,WHERE~SERIES. The last line is Spearman's rank
// correlation; ties have their mean rank.
func renderRanks(rows []Row, papers, as []DocumentValue, w arguments) (string, error) {
	of, err := parseColumn(w.options["of"])
	if err != nil {
		return "", err
	}
	printed, _, labels := groupValues(papers)
	kinds := map[string]string{}
	for _, v := range as {
		kinds[v.Series] = v.X
	}
	var t tableLines
	head, table := []string{"label", "setting"}, make([][]string, len(labels)+1)
	for i, label := range labels {
		table[i] = []string{label, kinds[label]}
	}
	table[len(labels)] = []string{"rank correlation", ""}
	for _, pair := range w.list("pairs") {
		where, series, ok := strings.Cut(pair, "~")
		theirs, known := printed[series]
		if !ok || !known {
			return "", fmt.Errorf("pairs: %q is not WHERE~SERIES of the document", pair)
		}
		head = append(head, series, "rank", where+" "+of.heading(), "rank")
		var a, b []float64
		var ours []stats.Estimate
		for _, label := range labels {
			e, err := estimateFigure(rows, w.figureArguments(where, w.options["by"], kinds[label]))
			if err != nil && !errors.As(err, new(notMeasuredError)) {
				return "", err
			}
			a, b, ours = append(a, theirs[label]), append(b, e.Mean), append(ours, e)
		}
		measured := !slices.ContainsFunc(ours, func(e stats.Estimate) bool { return e.N == 0 })
		theirRanks, ourRanks := rankValues(a), rankValues(b)
		correlation := "–"
		for i := range labels {
			r := "–"
			if measured {
				r = formatNumber(ourRanks[i])
			}
			table[i] = append(table[i], formatNumber(a[i]), formatNumber(theirRanks[i]), report.FormatInterval(ours[i]), r)
		}
		if measured {
			correlation = fmt.Sprintf("%.2f", correlate(theirRanks, ourRanks))
		}
		table[len(labels)] = append(table[len(labels)], "", "", "", correlation)
	}
	t.head(head...)
	for _, line := range table {
		t.line(line...)
	}
	return t.String(), nil
}

func (w arguments) figureArguments(where, parameter, value string) arguments {
	return arguments{step: w.step, options: map[string]string{"of": w.options["of"], "where": where + "," + parameter + "=" + value}}
}

// rankValues returns ranks from 1. Equal values share their mean rank.
func rankValues(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		below, equal := 0, 0
		for _, o := range values {
			switch {
			case o < v:
				below++
			case o == v:
				equal++
			}
		}
		out[i] = float64(below) + float64(equal+1)/2
	}
	return out
}

// correlate returns Pearson's correlation, NaN if one side is constant.
func correlate(a, b []float64) float64 {
	of := func(x, y []float64) (sum float64) {
		mx, my := stats.EstimateMean(x).Mean, stats.EstimateMean(y).Mean
		for i := range x {
			sum += (x[i] - mx) * (y[i] - my)
		}
		return sum
	}
	return of(a, b) / math.Sqrt(of(a, a)*of(b, b))
}

// permutationSeed is the default seed of skerry compare.
const permutationSeed = 1

// renderVersus compares two values of the parameter by= (between=A,B) in each cell of rows=: the
// figure of=, the effect size without and with small-sample correction, positive if B is higher,
// and the p value of a permutation test. paper= is a document's table of effect sizes, whose g is
// recomputed.
func renderVersus(rows []Row, papers []DocumentValue, w arguments) (string, error) {
	of, err := parseColumn(w.options["of"])
	if err != nil {
		return "", err
	}
	keys, sides := w.list("rows"), w.list("between")
	if len(keys) == 0 || len(sides) != 2 || w.options["by"] == "" {
		return "", fmt.Errorf("versus: want of=METRIC, rows=PARAMETER,PARAMETER, by=PARAMETER and between=A,B")
	}
	all, err := cells(rows, keys)
	if err != nil {
		return "", err
	}
	printed, _, at := groupValues(papers)
	head := append(keys[:len(keys):len(keys)], of.heading()+", "+sides[0], of.heading()+", "+sides[1], "g", "g, corrected", "p")
	if len(papers) > 0 {
		head = append(head, "published g, recomputed")
	}
	var t tableLines
	t.head(head...)
	for _, c := range all {
		var values [2][]float64
		var means [2]stats.Estimate
		for i, side := range sides {
			here, err := w.withParameter(w.options["by"], side).filterRows(c.rows)
			if err != nil && !errors.As(err, new(notMeasuredError)) {
				return "", err
			}
			values[i] = of.values(cell{rows: here})
			means[i] = stats.EstimateMean(values[i])
		}
		e, p := stats.ComputeEffect(means[0], means[1]), stats.PermutationTest(values[0], values[1], permutationSeed)
		fields := append(c.key[:len(c.key):len(c.key)], report.FormatInterval(means[0]), report.FormatInterval(means[1]),
			formatDecimals(2, e.Uncorrected, e.HasHedges), formatDecimals(2, e.Hedges, e.HasHedges), formatDecimals(3, p.P, p.OK))
		if len(papers) > 0 {
			i := slices.IndexFunc(at, func(x string) bool { return strings.EqualFold(x, c.key[len(c.key)-1]) })
			fields = append(fields, formatDecimals(2, recomputeEffect(printed, at[max(0, i)]).Uncorrected, i >= 0))
		}
		t.line(fields...)
	}
	return t.String(), nil
}

func formatDecimals(digits int, v float64, known bool) string {
	if !known {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func renderSentence(kind string, rows []Row, w arguments) (string, error) {
	e, err := estimateFigure(rows, w)
	if err != nil {
		return "", err
	}
	if kind == "figure" {
		if e.N == 0 {
			return "no valid trial", nil
		}
		return report.FormatInterval(e), nil
	}
	return judgeClaim(e, w)
}

// estimateFigure returns the figure of= over the trials that match where=. It is empty if no trial
// has the figure, such as a censored recovery. TestPagesUseStoredFigures checks that the step
// stores it.
func estimateFigure(rows []Row, w arguments) (e stats.Estimate, err error) {
	c, err := parseColumn(w.options["of"])
	if err != nil {
		return e, err
	}
	here, err := w.filterRows(rows)
	if err != nil {
		return e, err
	}
	e = c.mean(cell{rows: here})
	if c.parameter == "" {
		return e, nil
	}
	there, err := w.withParameter(c.parameter, c.value).filterRows(rows)
	if err != nil {
		return e, err
	}
	return stats.EstimateRatio(e, c.mean(cell{rows: there})), nil
}

func judgeClaim(e stats.Estimate, w arguments) (string, error) {
	least, errLeast := strconv.ParseFloat(w.options["least"], 64)
	most, errMost := strconv.ParseFloat(w.options["most"], 64)
	if errLeast != nil || errMost != nil || least > most {
		return "", fmt.Errorf("claim: want least=NUMBER and most=NUMBER")
	}
	low, high := e.Mean-e.HalfWidth, e.Mean+e.HalfWidth
	switch {
	case e.N == 0:
		return "inconclusive: no valid trial", nil
	case !e.HasInterval():
		return "inconclusive: " + report.FormatInterval(e) + " in one trial", nil
	case least <= low && high <= most:
		return "**confirmed**: " + report.FormatInterval(e), nil
	case high < least || most < low:
		return "**refuted**: " + report.FormatInterval(e), nil
	}
	return "inconclusive: " + report.FormatInterval(e), nil
}
