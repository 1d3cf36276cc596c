package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/report/results/data"
)

// cell is the trials that have some parameters in common.
type cell struct {
	key  []string
	rows []data.Row
}

// cells groups rows by parameters, in the order of their values.
func cells(rows []data.Row, by []string) ([]cell, error) {
	var out []cell
	for _, r := range rows {
		key := make([]string, len(by))
		for i, name := range by {
			value, ok := r.Parameters[name]
			if !ok {
				return nil, fmt.Errorf("trials have no parameter %q", name)
			}
			key[i] = value
		}
		i := slices.IndexFunc(out, func(c cell) bool { return slices.Equal(c.key, key) })
		if i < 0 {
			out, i = append(out, cell{key: key}), len(out)
		}
		out[i].rows = append(out[i].rows, r)
	}
	slices.SortStableFunc(out, func(a, b cell) int { return slices.CompareFunc(a.key, b.key, compare) })
	return out, nil
}

// compare orders numbers by size, and all else as text.
func compare(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// column is a figure as a table shows it.
type column struct {
	metric string
	unit   string
	// Relative is the cell whose value the figure is a multiple of, as PARAMETER=VALUE.
	parameter, value string
}

// units are what figures are divided by.
var units = map[string]float64{"": 1, "ms": 1e-3, "s": 1, "MB": 1e6, "kB": 1e3, "us": 1e-6, "%": 1e-2}

// parseColumn reads METRIC[:UNIT] or METRIC/PARAMETER=VALUE.
func parseColumn(text string) (column, error) {
	var c column
	var relative bool
	c.metric, c.value, relative = strings.Cut(text, "/")
	if relative {
		var ok bool
		if c.parameter, c.value, ok = strings.Cut(c.value, "="); !ok {
			return c, fmt.Errorf("column %q: write METRIC/PARAMETER=VALUE", text)
		}
	}
	c.metric, c.unit, _ = strings.Cut(c.metric, ":")
	if _, ok := units[c.unit]; !ok {
		return c, fmt.Errorf("column %q: no unit %q", text, c.unit)
	}
	return c, nil
}

func (c column) head() string {
	switch {
	case c.parameter != "":
		return fmt.Sprintf("%s, multiple of %s %s", c.metric, c.parameter, c.value)
	case c.unit != "":
		return c.metric + " " + c.unit
	case c.metric == "goodput", c.metric == "throughput":
		return c.metric + "/s"
	}
	return c.metric
}

// of is the figure of a cell. all and by find the cell that it is relative to.
func (c column) of(of cell, all []cell, by []string) (stats.Estimate, error) {
	e := c.mean(of)
	if c.parameter == "" {
		return e, nil
	}
	i := slices.Index(by, c.parameter)
	if i < 0 {
		return e, fmt.Errorf("column %s: no row parameter %q", c.metric, c.parameter)
	}
	key := slices.Clone(of.key)
	key[i] = c.value
	j := slices.IndexFunc(all, func(o cell) bool { return slices.Equal(o.key, key) })
	if j < 0 { // not measured yet, of a run that was interrupted
		return stats.Estimate{}, nil
	}
	if slices.Equal(key, of.key) {
		return stats.Of([]float64{1}), nil
	}
	return stats.Ratio(e, c.mean(all[j])), nil
}

func (c column) mean(of cell) stats.Estimate { return stats.Of(c.values(of)) }

// values are those of a cell's trials that count and have the figure.
func (c column) values(of cell) (values []float64) {
	for _, r := range of.rows {
		if v, ok := r.Figures[c.metric]; ok && r.Counts() {
			values = append(values, v/units[c.unit])
		}
	}
	return values
}
