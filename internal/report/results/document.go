package results

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/evidence/stats"
)

// DocumentValue is one value of a figure or table of a document.
type DocumentValue struct {
	// Item names the figure or table: "fhc-5".
	Item, Series string
	// X is what Y is the value at: a number, or a name.
	X string
	Y float64
	// How says how the value was read: printed, or measured on the picture.
	How string
}

var paperColumns = []string{"item", "series", "x", "y", "how"}

// ReadPapers reads the values of documents, as CSV with item, series, x, y, how.
func ReadPapers(r io.Reader) ([]DocumentValue, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading the documents' values: %w", err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], paperColumns) {
		return nil, fmt.Errorf("reading the documents' values: the columns are %s", strings.Join(paperColumns, ","))
	}
	var out []DocumentValue
	for i, l := range lines[1:] {
		v := DocumentValue{Item: l[0], Series: l[1], X: l[2], How: l[4]}
		if v.Y, err = strconv.ParseFloat(l[3], 64); err != nil || v.X == "" || v.How == "" {
			return nil, fmt.Errorf("reading the documents' values: line %d: y is a number, and what it is at and how it was read are said", i+2)
		}
		out = append(out, v)
	}
	return out, nil
}

// GroupValues is a document's values by series, then by what they are at, with the order of both.
func GroupValues(values []DocumentValue) (by map[string]map[string]float64, series, at []string) {
	by = map[string]map[string]float64{}
	for _, v := range values {
		if by[v.Series] == nil {
			by[v.Series] = map[string]float64{}
			series = append(series, v.Series)
		}
		if !slices.Contains(at, v.X) {
			at = append(at, v.X)
		}
		by[v.Series][v.X] = v.Y
	}
	return by, series, at
}

// formatNumber writes a document's value as it stands there.
func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// printedValue is one value of a document: printed ITEM series=NAME x=AT.
func printedValue(w arguments, from PageSource) (string, error) {
	values, err := from.Papers(w.step)
	if err != nil {
		return "", err
	}
	by, _, _ := GroupValues(values)
	v, ok := by[w.options["series"]][w.options["x"]]
	if !ok {
		return "", fmt.Errorf("the document has no such value")
	}
	return formatNumber(v), nil
}

// renderDocument is a document's table as it is, or its effect sizes recomputed.
func renderDocument(kind string, w arguments, from PageSource) (string, error) {
	values, err := from.Papers(w.step)
	if err != nil {
		return "", err
	}
	if kind == "effects" {
		return renderEffects(values), nil
	}
	by, series, at := GroupValues(w.filterSeries(values))
	var t tableLines
	t.head(append([]string{"document"}, series...)...)
	for _, x := range at {
		fields := []string{x}
		for _, s := range series {
			fields = append(fields, documentValue(by[s], x))
		}
		t.line(fields...)
	}
	return t.String(), nil
}

// documentValue is a document's value at x, which may be written in another case.
func documentValue(of map[string]float64, x string) string {
	for at, v := range of {
		if strings.EqualFold(at, x) {
			return formatNumber(v)
		}
	}
	return ""
}

// effectTolerance is by how much an effect size may differ from what its means and deviations give: they were
// rounded before it.
const effectTolerance = 0.08

// Effect is an effect size as a document prints it, and as its own means and deviations give it.
type Effect struct {
	A, B stats.Estimate
	// Printed is NaN where the document gives none.
	Printed float64
	stats.Effect
}

// Wrong says that the printed effect size does not follow from what stands beside it.
func (e Effect) Wrong() bool { return math.Abs(e.Printed-e.Uncorrected) > effectTolerance }

// RecomputeEffect recomputes the effect size of CLOUDS' tables 6-1 to 6-6, of repetitions runs each.
func RecomputeEffect(by map[string]map[string]float64, x string) Effect {
	const repetitions = 5
	e := Effect{
		A:       stats.Estimate{N: repetitions, Mean: by["AWS"][x], SD: by["AWS SD"][x]},
		B:       stats.Estimate{N: repetitions, Mean: by["OpenStack"][x], SD: by["OpenStack SD"][x]},
		Printed: math.NaN(),
	}
	if g, ok := by["g"][x]; ok {
		e.Printed = g
	}
	e.Effect = stats.ComputeEffect(e.A, e.B)
	return e
}

// renderEffects is the table of a document's effect sizes beside what its own figures give.
func renderEffects(values []DocumentValue) string {
	by, _, at := GroupValues(values)
	var t tableLines
	t.head("", "AWS: mean ± SD", "OpenStack: mean ± SD", "g, printed", "g, recomputed", "corrected for five repetitions")
	for _, x := range at {
		e := RecomputeEffect(by, x)
		given, recomputed := "", fmt.Sprintf("%.2f", e.Uncorrected)
		if !math.IsNaN(e.Printed) {
			given = formatNumber(e.Printed)
		}
		if e.Wrong() {
			recomputed = "**" + recomputed + "**"
		}
		t.line(x, formatNumber(e.A.Mean)+" ± "+formatNumber(e.A.SD), formatNumber(e.B.Mean)+" ± "+formatNumber(e.B.SD), given, recomputed, fmt.Sprintf("%.2f", e.Hedges))
	}
	return t.String()
}
