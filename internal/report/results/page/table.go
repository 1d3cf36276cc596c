package page

import (
	"fmt"
	"strings"

	"skerry/internal/report"
	"skerry/internal/report/results/data"
)

// table is a row for each cell of rows=, with columns=, how many valid trials it has, and what
// of it is left out.
func table(rows []data.Row, w words) (string, error) {
	by := w.list("rows")
	all, err := cells(rows, by)
	if err != nil {
		return "", err
	}
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
	var b strings.Builder
	line := func(fields ...string) { b.WriteString("| " + strings.Join(fields, " | ") + " |\n") }
	line(append(head, "n", "notes")...)
	line(strings.Split(strings.Repeat("--- ", len(head)+2), " ")[:len(head)+2]...)
	for _, c := range all {
		fields := append([]string{}, c.key...)
		for _, col := range columns {
			e, err := col.of(c, all, by)
			if err != nil {
				return "", err
			}
			fields = append(fields, report.Interval(e))
		}
		valid, notes := c.notes()
		line(append(fields, fmt.Sprint(valid), notes)...)
	}
	return b.String(), w.only("rows", "columns")
}

// notes tells how many trials of a cell are valid, and what is to be known of it.
func (c cell) notes() (valid int, text string) {
	var notes []string
	left, machine, again := 0, false, 0
	for _, r := range c.rows {
		if r.Valid() {
			valid++
		} else {
			left++
		}
		machine = machine || r.Bound == "machine"
		again += r.Attempts - 1
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%d left out", left))
	}
	if machine {
		notes = append(notes, "bound by the machine")
	}
	if again > 0 {
		notes = append(notes, fmt.Sprintf("%d measured again", again))
	}
	return valid, strings.Join(notes, ", ")
}
