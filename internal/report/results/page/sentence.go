package page

import (
	"fmt"
	"strconv"

	"skerry/internal/evidence/stats"
	"skerry/internal/report"
	"skerry/internal/report/results/data"
)

// sentence is a figure, or what data make of a claim, within a sentence.
func sentence(kind string, rows []data.Row, w words) (string, error) {
	e, err := estimate(rows, w)
	if err != nil {
		return "", err
	}
	if kind == "figure" {
		if e.N == 0 {
			return "no valid trial", nil
		}
		return report.Interval(e), nil
	}
	return claim(e, w)
}

// estimate is the figure of= over the valid trials that where= keeps. Where none has it - a recovery that was
// not seen - there is none; that the step keeps it at all is what TestPagesAskForWhatIsKept looks at.
func estimate(rows []data.Row, w words) (e stats.Estimate, err error) {
	c, err := parseColumn(w.options["of"])
	if err != nil {
		return e, err
	}
	here, err := w.filter(rows)
	if err != nil {
		return e, err
	}
	e = c.mean(cell{rows: here})
	if c.parameter == "" {
		return e, nil
	}
	there, err := w.with(c.parameter, c.value).filter(rows)
	if err != nil {
		return e, err
	}
	return stats.Ratio(e, c.mean(cell{rows: there})), nil
}

// claim says what data make of a document's claim that a figure lies from least= to most=: its
// 95 % confidence interval lies within, apart, or across a bound.
func claim(e stats.Estimate, w words) (string, error) {
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
		return "not decided: " + report.Interval(e) + " in one trial", nil
	case least <= low && high <= most:
		return "**confirmed**: " + report.Interval(e), nil
	case high < least || most < low:
		return "**refuted**: " + report.Interval(e), nil
	}
	return "not decided: " + report.Interval(e), nil
}
