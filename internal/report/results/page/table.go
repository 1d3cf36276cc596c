package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/report"
	"skerry/internal/report/results/data"
)

// lines are the lines of a table.
type lines struct{ strings.Builder }

func (l *lines) line(fields ...string) { l.WriteString("| " + strings.Join(fields, " | ") + " |\n") }

func (l *lines) head(fields ...string) {
	l.line(fields...)
	l.line(strings.Split(strings.Repeat("--- ", len(fields)), " ")[:len(fields)]...)
}

// table is a row for each cell of rows=, with columns=, what a document has there (paper=), how
// many trials count, and what of it is left out. sort= orders rows by a column.
func table(rows []data.Row, papers []Value, w words) (string, error) {
	by := w.list("rows")
	var columns []column
	head := append([]string{}, by...)
	for _, text := range w.list("columns") {
		c, err := parseColumn(text)
		if err != nil {
			return "", err
		}
		columns, head = append(columns, c), append(head, c.head())
	}
	if len(by) == 0 || len(columns) == 0 {
		return "", fmt.Errorf("a table needs rows=PARAMETER,PARAMETER and columns=METRIC,METRIC")
	}
	all, err := cells(rows, by)
	if err != nil {
		return "", err
	}
	if err := w.sort(all); err != nil {
		return "", err
	}
	values, series, _ := By(papers)
	for _, s := range series {
		head = append(head, "document: "+s)
	}
	var t lines
	t.head(append(head, "n", "notes")...)
	for _, c := range all {
		fields := append([]string{}, c.key...)
		for _, col := range columns {
			e, err := col.of(c, all, by)
			if err != nil {
				return "", err
			}
			fields = append(fields, report.Interval(e))
		}
		for _, s := range series {
			fields = append(fields, cellOf(values[s], c.key[len(c.key)-1]))
		}
		counting, notes := c.notes()
		t.line(append(fields, fmt.Sprint(counting), notes)...)
	}
	return t.String(), nil
}

// sort orders cells by the figure that sort= names, the least first.
func (w words) sort(all []cell) error {
	text := w.options["sort"]
	if text == "" {
		return nil
	}
	c, err := parseColumn(text)
	slices.SortStableFunc(all, func(a, b cell) int { return cmp.Compare(c.mean(a).Mean, c.mean(b).Mean) })
	return err
}

// notes tells how many trials of a cell count, and what is to be known of it.
func (c cell) notes() (counting int, text string) {
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
		notes = append(notes, fmt.Sprintf("%d left out", left))
	}
	if faults > 0 {
		notes = append(notes, fmt.Sprintf("audit: data lost or wrong in %d", faults))
	}
	if machine {
		notes = append(notes, "bound by the machine")
	}
	if again > 0 {
		notes = append(notes, fmt.Sprintf("%d measured again", again))
	}
	return counting, strings.Join(notes, ", ")
}
