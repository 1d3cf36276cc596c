package page

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/report"
	"skerry/internal/report/results/data"
)

// ranks sets the values of a document (paper=) beside ours (of=) in one table, each with its rank, the least first. The
// document's labels stand for values of the parameter by=, as the item as= tells: each of its series is a label, at the
// value that stands for it. pairs= names what is compared: WHERE~SERIES,WHERE~SERIES. The last line has the rank
// correlation (Spearman's, of ties the mean rank).
func ranks(rows []data.Row, papers, as []Value, w words) (string, error) {
	of, err := parseColumn(w.options["of"])
	if err != nil {
		return "", err
	}
	printed, _, labels := By(papers)
	kinds := map[string]string{}
	for _, v := range as {
		kinds[v.Series] = v.X
	}
	var t lines
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
		head = append(head, series, "rank", where+" "+of.head(), "rank")
		var a, b []float64
		var ours []stats.Estimate
		for _, label := range labels {
			e, err := estimate(rows, w.at(where, w.options["by"], kinds[label]))
			if err != nil && !errors.As(err, new(NotYet)) {
				return "", err
			}
			a, b, ours = append(a, theirs[label]), append(b, e.Mean), append(ours, e)
		}
		measured := !slices.ContainsFunc(ours, func(e stats.Estimate) bool { return e.N == 0 })
		theirRanks, ourRanks := rank(a), rank(b)
		correlation := "–"
		for i := range labels {
			r := "–"
			if measured {
				r = Number(ourRanks[i])
			}
			table[i] = append(table[i], Number(a[i]), Number(theirRanks[i]), report.Interval(ours[i]), r)
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

// at is the call of figure where a parameter has a value, and one more is as where says.
func (w words) at(where, parameter, value string) words {
	return words{step: w.step, options: map[string]string{"of": w.options["of"], "where": where + "," + parameter + "=" + value}}
}

// rank gives each value its place among all, from 1; equal ones share the mean of theirs.
func rank(values []float64) []float64 {
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
		mx, my := stats.Of(x).Mean, stats.Of(y).Mean
		for i := range x {
			sum += (x[i] - mx) * (y[i] - my)
		}
		return sum
	}
	return of(a, b) / math.Sqrt(of(a, a)*of(b, b))
}
