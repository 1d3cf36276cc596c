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

// renderRanks sets the values of a document (paper=) beside ours (of=) in one table, each with its rank, the least first. The
// document's labels stand for values of the parameter by=, as the item as= tells: each of its series is a label, at the
// value that stands for it. pairs= names what is compared: WHERE~SERIES,WHERE~SERIES. The last line has the rank
// correlation (Spearman's, of ties the mean rank).
func renderRanks(rows []Row, papers, as []DocumentValue, w arguments) (string, error) {
	of, err := parseColumn(w.options["of"])
	if err != nil {
		return "", err
	}
	printed, _, labels := GroupValues(papers)
	kinds := map[string]string{}
	for _, v := range as {
		kinds[v.Series] = v.X
	}
	var t tableLines
	head, table := []string{"document", "here"}, make([][]string, len(labels)+1)
	for i, label := range labels {
		table[i] = []string{label, kinds[label]}
	}
	table[len(labels)] = []string{"rank correlation", ""}
	for _, pair := range w.list("pairs") {
		where, series, ok := strings.Cut(pair, "~")
		theirs, known := printed[series]
		if !ok || !known {
			return "", fmt.Errorf("pairs: %q is no WHERE~SERIES of the document", pair)
		}
		head = append(head, series, "rank", where+" "+of.heading(), "rank")
		var a, b []float64
		var ours []stats.Estimate
		for _, label := range labels {
			e, err := estimateFigure(rows, w.figureArguments(where, w.options["by"], kinds[label]))
			if err != nil && !errors.As(err, new(NotMeasuredError)) {
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

// figureArguments is the call of figure where a parameter has a value, and one more is as where says.
func (w arguments) figureArguments(where, parameter, value string) arguments {
	return arguments{step: w.step, options: map[string]string{"of": w.options["of"], "where": where + "," + parameter + "=" + value}}
}

// rankValues gives each value its place among all, from 1; equal ones share the mean of theirs.
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

// correlate is Pearson's correlation, NaN where one side is constant.
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

// permutationSeed is the seed of permutation tests, as skerry compare has it by default.
const permutationSeed = 1

// renderVersus sets two values of the parameter by= (between=A,B) side by side in each cell of rows=: the figure of=, Hedges' g as the
// documents have it and with the correction for few repetitions, positive where it is higher in B, and the p of a
// permutation test of the means. paper= is a document's table of effect sizes, whose g is recomputed beside ours.
func renderVersus(rows []Row, papers []DocumentValue, w arguments) (string, error) {
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
	printed, _, at := GroupValues(papers)
	head := append(keys[:len(keys):len(keys)], of.heading()+", "+sides[0], of.heading()+", "+sides[1], "g", "g, corrected", "p")
	if len(papers) > 0 {
		head = append(head, "document's g, recomputed")
	}
	var t tableLines
	t.head(head...)
	for _, c := range all {
		var values [2][]float64
		var means [2]stats.Estimate
		for i, side := range sides {
			here, err := w.withParameter(w.options["by"], side).filterRows(c.rows)
			if err != nil && !errors.As(err, new(NotMeasuredError)) {
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
			fields = append(fields, formatDecimals(2, RecomputeEffect(printed, at[max(0, i)]).Uncorrected, i >= 0))
		}
		t.line(fields...)
	}
	return t.String(), nil
}

// formatDecimals writes a number with so many, and a dash where there is none.
func formatDecimals(digits int, v float64, known bool) string {
	if !known {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// renderSentence is a figure, or what data make of a claim, within a sentence.
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

// estimateFigure is the figure of= over the valid trials that where= keeps. Where none has it - a recovery that was
// not seen - there is none; that the step keeps it at all is what TestPagesAskForWhatIsKept looks at.
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

// judgeClaim says what data make of a document's claim that a figure lies from least= to most=: its
// 95 % confidence interval lies within, apart, or across a bound.
func judgeClaim(e stats.Estimate, w arguments) (string, error) {
	least, errLeast := strconv.ParseFloat(w.options["least"], 64)
	most, errMost := strconv.ParseFloat(w.options["most"], 64)
	if errLeast != nil || errMost != nil || least > most {
		return "", fmt.Errorf("a claim needs least=NUMBER and most=NUMBER")
	}
	low, high := e.Mean-e.HalfWidth, e.Mean+e.HalfWidth
	switch {
	case e.N == 0:
		return "not decided: no valid trial", nil
	case !e.HasInterval():
		return "not decided: " + report.FormatInterval(e) + " in one trial", nil
	case least <= low && high <= most:
		return "**confirmed**: " + report.FormatInterval(e), nil
	case high < least || most < low:
		return "**refuted**: " + report.FormatInterval(e), nil
	}
	return "not decided: " + report.FormatInterval(e), nil
}
