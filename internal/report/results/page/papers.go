package page

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Value is one value of a figure or table of a document.
type Value struct {
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
func ReadPapers(r io.Reader) ([]Value, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading the documents' values: %w", err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], paperColumns) {
		return nil, fmt.Errorf("reading the documents' values: the columns are %s", strings.Join(paperColumns, ","))
	}
	var out []Value
	for i, l := range lines[1:] {
		v := Value{Item: l[0], Series: l[1], X: l[2], How: l[4]}
		if v.Y, err = strconv.ParseFloat(l[3], 64); err != nil || v.X == "" || v.How == "" {
			return nil, fmt.Errorf("reading the documents' values: line %d: y is a number, and what it is at and how it was read are said", i+2)
		}
		out = append(out, v)
	}
	return out, nil
}
