package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
)

type column struct {
	head string
	left bool // text; numbers are aligned at the right
	// need ranks columns for narrow terminals: 0 is always shown, the highest value is dropped
	// first.
	need int
}

type textTable struct {
	columns []column
	rows    [][]string
}

const columnGap = "  "

// write prints the table. It drops columns that do not fit into width characters; 0 means no limit.
// Columns that are empty in every row are omitted.
func (t textTable) write(p Printer, width int) {
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
	for width > 0 && lineWidth(shown, widths) > width {
		out := slices.MaxFunc(shown, func(a, b int) int { return t.columns[a].need - t.columns[b].need })
		if t.columns[out].need == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == out })
	}
	heads, rules := make([]string, len(t.columns)), make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i], rules[i] = c.head, strings.Repeat("─", widths[i])
	}
	for _, r := range append([][]string{heads, rules}, t.rows...) {
		t.writeLine(p, r, shown, widths)
	}
}

func lineWidth(shown, widths []int) int {
	n := len(columnGap) * max(0, len(shown)-1)
	for _, i := range shown {
		n += widths[i]
	}
	return n
}

func (t textTable) writeLine(p Printer, row []string, shown, widths []int) {
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
	p.Linef("%s", strings.TrimRight(line.String(), " "))
}

// alignIntervals pads half-widths so that the ± signs of a column line up.
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

type sideTable struct {
	Rows    [][]string
	columns []column
}

func (m *model) poolTable() sideTable {
	t := sideTable{columns: []column{{head: "trial"}, {head: "workload", left: true}, {head: "client", left: true}, {head: "threads"},
		{head: "goodput/s"}, {head: "p50 ms"}, {head: "p95 ms"}, {head: "p99 ms"}, {head: "errors"}, {head: "client cores"},
		{head: "bound by", left: true}}}
	for _, x := range m.dir.Summary.Trials {
		for _, p := range x.Pools {
			l := p.All.Latency()
			_, share := unsuccessful(p.Outcomes)
			t.Rows = append(t.Rows, []string{strconv.Itoa(x.ID), sanitize(p.Workload), sanitize(p.Client), strconv.Itoa(p.Threads),
				formatFigure(p.Goodput),
				formatMillis(l.P50), formatMillis(l.P95), formatMillis(l.P99), formatPercent(share), formatFigure(p.ClientCPU), sanitize(p.Bound.By)})
		}
	}
	return t
}

const maxErrorKinds = 8

func (m *model) errorTable() sideTable {
	t := sideTable{columns: []column{{head: "trial"}, {head: "operation", left: true}, {head: "outcome", left: true},
		{head: "class", left: true},
		{head: "node", left: true}, {head: "count"}, {head: "from s"}, {head: "to s"}, {head: "over time", left: true, need: 1}}}
	for _, x := range m.dir.Summary.Trials {
		if len(x.Errors) == 0 {
			continue
		}
		rows, err := m.dir.ErrorSeconds(x.ID)
		if err != nil || len(rows) == 0 { // an older version recorded none
			continue
		}
		worst := slices.SortedStableFunc(slices.Values(x.Errors), func(a, b record.ErrorCount) int { return int(b.Count - a.Count) })
		for i, e := range worst {
			if i == maxErrorKinds {
				break
			}
			t.Rows = append(t.Rows, errorRow(x, e, rows))
		}
	}
	return t
}

func errorRow(x record.Trial, e record.ErrorCount, rows []record.ErrorSecond) []string {
	values := make([]float64, max(1, int(x.DurationS+0.999)))
	first, last := "", ""
	for _, r := range rows {
		if r.Operation != e.Operation || r.Outcome != e.Outcome || r.Class != e.Class || r.Node != e.Node || r.T < 0 {
			continue
		}
		if first == "" {
			first = strconv.FormatInt(r.T, 10)
		}
		last = strconv.FormatInt(r.T+1, 10)
		for len(values) <= int(r.T) { // operations that drained after the end
			values = append(values, 0)
		}
		values[r.T] += float64(r.Count)
	}
	return []string{strconv.Itoa(x.ID), sanitize(e.Operation), e.Outcome, sanitize(e.Class), sanitize(e.Node),
		strconv.FormatInt(e.Count, 10), first, last, sparkline(values, sparkWidth)}
}

func (m *model) writeSideTables(p Printer) {
	for _, s := range []sideTable{m.poolTable(), m.errorTable()} {
		if len(s.Rows) == 0 {
			continue
		}
		textTable{columns: s.columns, rows: s.Rows}.write(p, 0)
		p.Linef("")
	}
}

func (m *model) loadFindings() (out []string) {
	type loads struct {
		records, rate, p50, p95 []float64
	}
	all := map[string]*loads{}
	var names []string
	for _, c := range m.cells {
		for _, t := range c.used {
			if t.Load == nil || t.Load.Records == 0 {
				continue
			}
			name := fmt.Sprint(t.Parameters["database"])
			if all[name] == nil {
				all[name] = &loads{}
				names = append(names, name)
			}
			l := all[name]
			l.records, l.rate = append(l.records, float64(t.Load.Records)), append(l.rate, t.Load.Rate)
			l.p50, l.p95 = append(l.p50, t.Load.Insert.Latency().P50), append(l.p95, t.Load.Insert.Latency().P95)
		}
	}
	for _, name := range names {
		l := all[name]
		out = append(out, fmt.Sprintf("%s loaded %s records at %s records/s before the measurement; a request took %s ms at the "+
			"median and %s ms at the 95th percentile (medians over %s).",
			sanitize(name), formatFigure(stats.Median(l.records)), formatFigure(stats.Median(l.rate)), formatMillis(stats.Median(l.p50)),
			formatMillis(stats.Median(l.p95)), Plural(len(l.rate), "trial")))
	}
	return out
}

func (m *model) dataFinding() []string {
	var data, ok, total float64
	for _, c := range m.cells {
		for _, t := range c.used {
			if t.Traffic == nil {
				continue
			}
			data, total, ok = data+float64(t.Traffic.DataBytes), total+float64(t.Traffic.TotalBytes), ok+float64(t.Outcomes.OK)
		}
	}
	if total == 0 || ok == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Traffic between data nodes was %s of the bytes on all links: %s bytes per operation.",
		formatPercent(data/total), formatFigure(data/ok))}
}

const (
	// sparks are bars of increasing height. idleMark stands for an interval without successful
	// operations.
	sparks   = "▁▂▃▄▅▆▇█"
	idleMark = '·'
)

const sparkWidth = 16

// sparkline draws values from 0 to their maximum. If there are more values than width, each
// character is the mean of several.
func sparkline(values []float64, width int) string {
	heights := []rune(sparks)
	n := min(width, len(values))
	means := make([]float64, n)
	top := 0.0
	for i := range means {
		from, to := i*len(values)/n, (i+1)*len(values)/n
		for _, v := range values[from:to] {
			means[i] += v / float64(to-from)
		}
		top = max(top, means[i])
	}
	var b strings.Builder
	for _, v := range means {
		switch {
		case v <= 0:
			b.WriteRune(idleMark)
		default:
			b.WriteRune(heights[min(len(heights)-1, int(v/top*float64(len(heights))))])
		}
	}
	return b.String()
}

func (m *model) goodputSparkline(t record.Trial) string {
	if t.State != record.TrialOK {
		return ""
	}
	rows, err := m.dir.Timeline(t.ID)
	if err != nil {
		return "" // the latency table reports damaged files
	}
	var values []float64
	for _, r := range rows {
		if r.T >= 0 {
			values = append(values, float64(r.OK)/cmp.Or(r.Length, 1))
		}
	}
	return sparkline(values, sparkWidth)
}
