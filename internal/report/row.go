package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/record"
)

// resultRow is a cell or a trial, formatted for a table. Empty fields are not shown.
type resultRow struct {
	Parameters []string
	Goodput    string
	Throughput string
	Relative   string // goodput divided by that at the largest scale
	Operation  string
	P50        string
	P95        string
	P99        string
	Errors     string
	Traffic    string
	RTT        string // error of the worst link
	BoundBy    string // limit of the throughput
	MadeBy     string // cause of the 99th percentile
	Verdict    string
	Spark      string // goodput over time

	N string // repetitions of a cell

	Trial      string // this and the fields below: trials only
	Repetition string
	Time       string
	Stopped    string
}

type rowColumn struct {
	column
	field func(*resultRow) *string
}

// sparkHead heads the column of sparklines: goodput from 0 to its maximum, of a cell's first trial.
const sparkHead = "goodput over time"

var (
	goodputColumn    = rowColumn{column{head: "goodput/s"}, func(r *resultRow) *string { return &r.Goodput }}
	throughputColumn = rowColumn{column{head: "throughput/s", need: 9}, func(r *resultRow) *string { return &r.Throughput }}
	p50Column        = rowColumn{column{head: "p50 ms", need: 5}, func(r *resultRow) *string { return &r.P50 }}
	p95Column        = rowColumn{column{head: "p95 ms"}, func(r *resultRow) *string { return &r.P95 }}
	p99Column        = rowColumn{column{head: "p99 ms", need: 2}, func(r *resultRow) *string { return &r.P99 }}
	errorsColumn     = rowColumn{column{head: "errors", need: 1}, func(r *resultRow) *string { return &r.Errors }}
	rttColumn        = rowColumn{column{head: "RTT error ms", need: 8}, func(r *resultRow) *string { return &r.RTT }}
	verdictColumn    = rowColumn{column{head: "verdict", left: true}, func(r *resultRow) *string { return &r.Verdict }}
)

func operationColumn(need int) rowColumn {
	return rowColumn{column{head: "operation", left: true, need: need}, func(r *resultRow) *string { return &r.Operation }}
}

func trafficColumn(need int) rowColumn {
	return rowColumn{column{head: "traffic MB", need: need}, func(r *resultRow) *string { return &r.Traffic }}
}

func boundColumn(need int) rowColumn {
	return rowColumn{column{head: "bound by", left: true, need: need}, func(r *resultRow) *string { return &r.BoundBy }}
}

func madeColumn(need int) rowColumn {
	return rowColumn{column{head: "p99 made by", left: true, need: need}, func(r *resultRow) *string { return &r.MadeBy }}
}

func sparkColumn(need int) rowColumn {
	return rowColumn{column{head: sparkHead, left: true, need: need}, func(r *resultRow) *string { return &r.Spark }}
}

func (m *model) cellColumns() []rowColumn {
	relative := column{head: "× that at " + m.scales.label(m.scales.largest()), need: 4}
	return []rowColumn{
		goodputColumn, throughputColumn, {relative, func(r *resultRow) *string { return &r.Relative }},
		operationColumn(0), p50Column, p95Column, p99Column, errorsColumn, trafficColumn(6), rttColumn,
		{column{head: "n", need: 7}, func(r *resultRow) *string { return &r.N }}, boundColumn(3), madeColumn(4), verdictColumn, sparkColumn(10),
	}
}

var trialColumns = []rowColumn{
	{column{head: "rep", need: 6}, func(r *resultRow) *string { return &r.Repetition }},
	goodputColumn, throughputColumn, operationColumn(3), p50Column, p95Column, p99Column, errorsColumn, trafficColumn(7), rttColumn,
	{column{head: "time", need: 4}, func(r *resultRow) *string { return &r.Time }},
	{column{head: "stopped by", left: true, need: 10}, func(r *resultRow) *string { return &r.Stopped }},
	boundColumn(5), madeColumn(6), verdictColumn, sparkColumn(11),
}

func (r *resultRow) texts(columns []rowColumn) (out []string) {
	for _, c := range columns {
		out = append(out, *c.field(r))
	}
	return out
}

func columnsOf(columns []rowColumn) (out []column) {
	for _, c := range columns {
		out = append(out, c.column)
	}
	return out
}

func (m *model) cellTable() textTable {
	names, parameters := m.parameterColumns()
	columns := m.cellColumns()
	t := textTable{columns: append(parameters, columnsOf(columns)...)}
	for _, c := range m.cells {
		r := m.cellRow(names, c)
		t.rows = append(t.rows, append(slices.Clone(r.Parameters), r.texts(columns)...))
		for _, o := range m.otherOperations(c) {
			t.rows = append(t.rows, append(make([]string, len(names)), o.texts(columns)...))
		}
	}
	return t
}

func (m *model) otherOperations(c *cell) (rows []resultRow) {
	for i, o := range c.operations {
		if i > 0 && o.count > 0 {
			rows = append(rows, resultRow{Operation: sanitize(o.name), P50: formatMillis(o.latency.P50), P95: formatMillis(o.latency.P95),
				P99: formatMillis(o.latency.P99)})
		}
	}
	return rows
}

func (m *model) cellRow(names []string, c *cell) resultRow {
	r := resultRow{Parameters: m.parameterCells(names, c.parameters), N: strconv.Itoa(len(c.used)),
		BoundBy: sanitize(bottleneckLabel(c.used)), MadeBy: sanitize(latencyCauseLabel(c.used)), Verdict: verdictLabel(c)}
	if len(c.used) == 0 {
		r.Goodput = noFigure
		return r
	}
	r.Goodput, r.Throughput = interval(c.goodput()), interval(c.estimates[metricThroughput])
	if relative := m.relativeGoodput(c); m.scales.vary() && relative.N > 0 {
		r.Relative = strconv.FormatFloat(relative.Mean, 'f', 2, 64)
	}
	if o, ok := c.leadingOperation(); ok {
		r.Operation, r.P50, r.P95, r.P99 = sanitize(o.name), formatMillis(o.latency.P50), formatMillis(o.latency.P95), formatMillis(o.latency.P99)
	}
	_, share := unsuccessful(outcomes(c.used))
	r.Errors, r.Traffic, r.RTT, r.Spark = formatPercent(share), noFigure, noFigure, m.goodputSparkline(c.used[0])
	if c.used[0].Traffic != nil {
		r.Traffic, r.RTT = formatMegabytes(c.traffic().Mean), formatHundredths(worstRTT(c.used))
	}
	return r
}

func worstRTT(trials []record.Trial) (worst float64) {
	for _, t := range trials {
		worst = max(worst, t.Fidelity.WorstRTTErrorMS)
	}
	return worst
}

func verdictLabel(c *cell) string {
	n := map[string]int{}
	for _, t := range c.trials {
		if t.State != record.TrialOK {
			n[t.State]++
		} else {
			n[t.Verdict.State]++
		}
	}
	n["not run"] = c.planned - len(c.trials)
	var parts []string
	for _, s := range []string{record.Valid, record.Suspect, record.TrialFailed, record.TrialInterrupted, "not run"} {
		switch {
		case n[s] == 0:
		case n[s] == c.planned:
			parts = append(parts, s)
		case s != record.Valid:
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	if len(parts) == 0 {
		return record.Valid
	}
	return strings.Join(parts, ", ")
}

func (m *model) trialTable() textTable {
	names, parameters := m.parameterColumns()
	t := textTable{columns: slices.Concat([]column{{head: "trial"}}, parameters, columnsOf(trialColumns))}
	for _, x := range m.dir.Summary.Trials {
		r := m.trialRow(names, x)
		t.rows = append(t.rows, slices.Concat([]string{r.Trial}, r.Parameters, r.texts(trialColumns)))
	}
	return t
}

func (m *model) trialRow(names []string, t record.Trial) resultRow {
	r := resultRow{Trial: strconv.Itoa(t.ID), Parameters: m.parameterCells(names, t.Parameters),
		Repetition: strconv.Itoa(t.Repetition), Spark: m.goodputSparkline(t)}
	if t.State != record.TrialOK {
		r.Goodput, r.Verdict = noFigure, t.State
		return r
	}
	r.Goodput, r.Throughput = trialGoodput(t), formatFigure(t.Throughput)
	if o, ok := m.trialOperation(t); ok {
		l := t.Operations[o].Latency()
		r.Operation, r.P50, r.P95, r.P99 = sanitize(o), formatMillis(l.P50), formatMillis(l.P95), formatMillis(l.P99)
	}
	_, share := unsuccessful(t.Outcomes)
	r.Errors, r.Traffic, r.RTT = formatPercent(share), noFigure, noFigure
	if t.Traffic != nil {
		r.Traffic, r.RTT = formatMegabytes(float64(t.Traffic.TotalBytes)), formatHundredths(t.Fidelity.WorstRTTErrorMS)
	}
	one := []record.Trial{t}
	r.Time, r.Stopped, r.BoundBy, r.MadeBy, r.Verdict = formatSeconds(t.DurationS), sanitize(t.Stopped),
		sanitize(bottleneckLabel(one)), sanitize(latencyCauseLabel(one)), sanitize(t.Verdict.State)
	return r
}

func trialGoodput(t record.Trial) string {
	if half, steady := t.SteadyInterval(); steady {
		return formatPlusMinus(t.Goodput, half)
	}
	return formatFigure(t.Goodput)
}

func (m *model) trialOperation(t record.Trial) (name string, ok bool) {
	for _, c := range m.cells {
		if slices.ContainsFunc(c.trials, func(x record.Trial) bool { return x.ID == t.ID }) {
			o, _ := c.leadingOperation()
			return o.name, t.Operations[o.name].Count > 0
		}
	}
	return "", false
}
