package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/report"
)

type tableLines struct{ strings.Builder }

func (l *tableLines) line(fields ...string) {
	l.WriteString("| " + strings.Join(fields, " | ") + " |\n")
}

func (l *tableLines) head(fields ...string) {
	l.line(fields...)
	l.line(strings.Split(strings.Repeat("--- ", len(fields)), " ")[:len(fields)]...)
}

// renderTable has a row for each cell of rows=, with columns=, the values of a document (paper=),
// the number of trials that count, and notes. sort= orders rows by a column.
func renderTable(rows []Row, papers []DocumentValue, w arguments) (string, error) {
	by := w.list("rows")
	var columns []column
	head := append([]string{}, by...)
	for _, text := range w.list("columns") {
		c, err := parseColumn(text)
		if err != nil {
			return "", err
		}
		columns, head = append(columns, c), append(head, c.heading())
	}
	if len(by) == 0 || len(columns) == 0 {
		return "", fmt.Errorf("table: want rows=PARAMETER,PARAMETER and columns=METRIC,METRIC")
	}
	all, err := cells(rows, by)
	if err != nil {
		return "", err
	}
	if err := w.sortCells(all); err != nil {
		return "", err
	}
	values, series, _ := groupValues(papers)
	for _, s := range series {
		head = append(head, "published: "+s)
	}
	var t tableLines
	t.head(append(head, "n", "notes")...)
	for _, c := range all {
		fields := append([]string{}, c.key...)
		for _, col := range columns {
			e, err := col.estimate(c, all, by)
			if err != nil {
				return "", err
			}
			fields = append(fields, report.FormatInterval(e))
		}
		for _, s := range series {
			fields = append(fields, documentValue(values[s], c.key[len(c.key)-1]))
		}
		counting, notes := c.summarize()
		t.line(append(fields, fmt.Sprint(counting), notes)...)
	}
	return t.String(), nil
}

func (w arguments) sortCells(all []cell) error {
	text := w.options["sort"]
	if text == "" {
		return nil
	}
	c, err := parseColumn(text)
	slices.SortStableFunc(all, func(a, b cell) int { return cmp.Compare(c.mean(a).Mean, c.mean(b).Mean) })
	return err
}

func (c cell) summarize() (counting int, text string) {
	var notes []string
	left, machine, again, faults := 0, false, 0, 0
	for _, r := range c.rows {
		if r.HasFaults() {
			faults++
		}
		if r.Counts() {
			counting++
		} else {
			left++
		}
		machine = machine || r.Bound == "machine"
		again += r.Attempts - 1
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%d excluded", left))
	}
	if faults > 0 {
		notes = append(notes, fmt.Sprintf("audit: data lost or wrong in %d", faults))
	}
	if machine {
		notes = append(notes, "limited by the machine")
	}
	if again > 0 {
		notes = append(notes, fmt.Sprintf("%d repeated", again))
	}
	return counting, strings.Join(notes, ", ")
}

type cell struct {
	key  []string
	rows []Row
}

func cells(rows []Row, by []string) ([]cell, error) {
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
	slices.SortStableFunc(out, func(a, b cell) int { return slices.CompareFunc(a.key, b.key, compareParameters) })
	return out, nil
}

func compareParameters(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

type column struct {
	metric string
	unit   string
	// parameter=value selects the cell that the figure is relative to.
	parameter, value string
}

var units = map[string]float64{"": 1, "ms": 1e-3, "s": 1, "MB": 1e6, "kB": 1e3, "us": 1e-6, "%": 1e-2}

// parseColumn parses METRIC[:UNIT] or METRIC/PARAMETER=VALUE.
func parseColumn(text string) (column, error) {
	var c column
	var relative bool
	c.metric, c.value, relative = strings.Cut(text, "/")
	if relative {
		var ok bool
		if c.parameter, c.value, ok = strings.Cut(c.value, "="); !ok {
			return c, fmt.Errorf("column %q: want METRIC/PARAMETER=VALUE", text)
		}
	}
	c.metric, c.unit, _ = strings.Cut(c.metric, ":")
	if _, ok := units[c.unit]; !ok {
		return c, fmt.Errorf("column %q: unknown unit %q", text, c.unit)
	}
	return c, nil
}

func (c column) heading() string {
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

func (c column) estimate(of cell, all []cell, by []string) (stats.Estimate, error) {
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
	if j < 0 { // not measured, the run was interrupted
		return stats.Estimate{}, nil
	}
	if slices.Equal(key, of.key) {
		return stats.EstimateMean([]float64{1}), nil
	}
	return stats.EstimateRatio(e, c.mean(all[j])), nil
}

func (c column) mean(of cell) stats.Estimate { return stats.EstimateMean(c.values(of)) }

func (c column) values(of cell) (values []float64) {
	for _, r := range of.rows {
		if v, ok := r.Figures[c.metric]; ok && r.Counts() {
			values = append(values, v/units[c.unit])
		}
	}
	return values
}

// splitRows makes a row for each NAME of a trial's figures PREFIX.NAME.FIGURE. NAME becomes the
// parameter PREFIX, and the figure is called FIGURE. each=change makes a row for each node that
// left or returned.
func splitRows(rows []Row, prefix string) (out []Row) {
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
