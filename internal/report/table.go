package report

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// column of a text table.
type column struct {
	head string
	left bool // text; numbers are aligned at the right
	// need says what may go where a terminal is narrow: 0 stays, the highest goes first.
	need int
}

// textTable is rows of cells below columns.
type textTable struct {
	columns []column
	rows    [][]string
}

const columnGap = "  "

// write prints the table in at most width characters a line, leaving columns out where it
// must; width 0 is no bound. Columns that are empty in every row are left out.
func (t textTable) write(w io.Writer, width int) error {
	t.alignIntervals()
	widths := make([]int, len(t.columns))
	var shown []int
	for i, c := range t.columns {
		filled := false
		widths[i] = utf8.RuneCountInString(c.head)
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
			filled = filled || r[i] != ""
		}
		if filled {
			shown = append(shown, i)
		}
	}
	for width > 0 && total(shown, widths) > width {
		out := slices.MaxFunc(shown, func(a, b int) int { return t.columns[a].need - t.columns[b].need })
		if t.columns[out].need == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == out })
	}
	var b strings.Builder
	heads, rules := make([]string, len(t.columns)), make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i], rules[i] = c.head, strings.Repeat("─", widths[i])
	}
	for _, r := range append([][]string{heads, rules}, t.rows...) {
		t.line(&b, r, shown, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func total(shown, widths []int) int {
	n := len(columnGap) * max(0, len(shown)-1)
	for _, i := range shown {
		n += widths[i]
	}
	return n
}

func (t textTable) line(b *strings.Builder, row []string, shown, widths []int) {
	var line strings.Builder
	for k, i := range shown {
		if k > 0 {
			line.WriteString(columnGap)
		}
		pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(row[i])))
		if t.columns[i].left {
			line.WriteString(row[i] + pad)
		} else {
			line.WriteString(pad + row[i])
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// alignIntervals pads what follows a ± so that means and half-widths stand below each other.
func (t textTable) alignIntervals() {
	for i := range t.columns {
		longest := 0
		for _, r := range t.rows {
			if _, half, ok := strings.Cut(r[i], plusMinusSign); ok {
				longest = max(longest, utf8.RuneCountInString(half))
			}
		}
		if longest == 0 {
			continue
		}
		for _, r := range t.rows {
			mean, half, ok := strings.Cut(r[i], plusMinusSign)
			sign := plusMinusSign
			if !ok {
				sign = "   "
			}
			r[i] = mean + sign + strings.Repeat(" ", longest-utf8.RuneCountInString(half)) + half
		}
	}
}
