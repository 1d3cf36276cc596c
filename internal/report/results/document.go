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
	// X is the position of Y: a number or a name.
	X string
	Y float64
	// How is the origin of the value: printed, or measured in the picture.
	How string
}

var paperColumns = []string{"item", "series", "x", "y", "how"}

// readPapers reads the values of documents, CSV with item, series, x, y, how.
func readPapers(r io.Reader) ([]DocumentValue, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the documents' values: %w", err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], paperColumns) {
		return nil, fmt.Errorf("read the documents' values: want the columns %s", strings.Join(paperColumns, ","))
	}
	var out []DocumentValue
	for i, l := range lines[1:] {
		v := DocumentValue{Item: l[0], Series: l[1], X: l[2], How: l[4]}
		if v.Y, err = strconv.ParseFloat(l[3], 64); err != nil || v.X == "" || v.How == "" {
			return nil, fmt.Errorf("read the documents' values: line %d: want a number y, and x and how", i+2)
		}
		out = append(out, v)
	}
	return out, nil
}

func groupValues(values []DocumentValue) (by map[string]map[string]float64, series, at []string) {
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

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// printedValue returns one value of a document: printed ITEM series=NAME x=X.
func printedValue(w arguments, from pageSource) (string, error) {
	values, err := from.Papers(w.step)
	if err != nil {
		return "", err
	}
	by, _, _ := groupValues(values)
	v, ok := by[w.options["series"]][w.options["x"]]
	if !ok {
		return "", fmt.Errorf("no such value in the document")
	}
	return formatNumber(v), nil
}

func renderDocument(kind string, w arguments, from pageSource) (string, error) {
	values, err := from.Papers(w.step)
	if err != nil {
		return "", err
	}
	if kind == "effects" {
		return renderEffects(values), nil
	}
	by, series, at := groupValues(w.filterSeries(values))
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

func documentValue(of map[string]float64, x string) string {
	for at, v := range of {
		if strings.EqualFold(at, x) {
			return formatNumber(v)
		}
	}
	return ""
}

const effectTolerance = 0.08

type documentEffect struct {
	A, B stats.Estimate
	// Printed is NaN if the document has none.
	Printed float64
	stats.Effect
}

// Wrong reports whether the printed effect size contradicts the printed means and deviations.
func (e documentEffect) Wrong() bool { return math.Abs(e.Printed-e.Uncorrected) > effectTolerance }

func recomputeEffect(by map[string]map[string]float64, x string) documentEffect {
	const repetitions = 5
	e := documentEffect{
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

func renderEffects(values []DocumentValue) string {
	by, _, at := groupValues(values)
	var t tableLines
	t.head("", "AWS: mean ± SD", "OpenStack: mean ± SD", "g, printed", "g, recomputed", "corrected for five repetitions")
	for _, x := range at {
		e := recomputeEffect(by, x)
		given, recomputed := "", fmt.Sprintf("%.2f", e.Uncorrected)
		if !math.IsNaN(e.Printed) {
			given = formatNumber(e.Printed)
		}
		if e.Wrong() {
			recomputed = "**" + recomputed + "**"
		}
		t.line(x, formatNumber(e.A.Mean)+" ± "+formatNumber(e.A.SD), formatNumber(e.B.Mean)+" ± "+formatNumber(e.B.SD), given, recomputed,
			fmt.Sprintf("%.2f", e.Hedges))
	}
	return t.String()
}
