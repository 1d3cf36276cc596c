package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/record"
)

// resultRow is a cell or a trial as a table in a terminal shows it. Each field
// is a text that is ready to print, "" where there is nothing to print.
type resultRow struct {
	Parameters []string
	Goodput    string
	Throughput string
	Relative   string // goodput as a multiple of that at the largest scale
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

	Trial      string // of a trial alone, as what follows
	Repetition string
	Time       string
	Stopped    string
}

// rowColumn is a column of a text table, and the field of a row that it shows.
type rowColumn struct {
	column
	field func(*resultRow) *string
}

// overTime heads the column of sparklines: the goodput over a trial's measurement, from 0 to
// its highest; of a cell that of its first trial.
const overTime = "goodput over time"

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
	return rowColumn{column{head: overTime, left: true, need: need}, func(r *resultRow) *string { return &r.Spark }}
}

// cellColumns follow the parameters of a cell.
func (m *model) cellColumns() []rowColumn {
	relative := column{head: "× that at " + m.scales.text(m.scales.largest()), need: 4}
	return []rowColumn{
		goodputColumn, throughputColumn, {relative, func(r *resultRow) *string { return &r.Relative }},
		operationColumn(0), p50Column, p95Column, p99Column, errorsColumn, trafficColumn(6), rttColumn,
		{column{head: "n", need: 7}, func(r *resultRow) *string { return &r.N }}, boundColumn(3), madeColumn(4), verdictColumn, sparkColumn(10),
	}
}

// trialColumns follow the parameters of a trial.
var trialColumns = []rowColumn{
	{column{head: "rep", need: 6}, func(r *resultRow) *string { return &r.Repetition }},
	goodputColumn, throughputColumn, operationColumn(3), p50Column, p95Column, p99Column, errorsColumn, trafficColumn(7), rttColumn,
	{column{head: "time", need: 4}, func(r *resultRow) *string { return &r.Time }},
	{column{head: "stopped by", left: true, need: 10}, func(r *resultRow) *string { return &r.Stopped }},
	boundColumn(5), madeColumn(6), verdictColumn, sparkColumn(11),
}

// cells are the texts of a row in the order of columns.
func (r *resultRow) cells(columns []rowColumn) (out []string) {
	for _, c := range columns {
		out = append(out, *c.field(r))
	}
	return out
}

func plainColumns(columns []rowColumn) (out []column) {
	for _, c := range columns {
		out = append(out, c.column)
	}
	return out
}

func (m *model) cellTable() textTable {
	names, parameters := m.parameterColumns()
	columns := m.cellColumns()
	t := textTable{columns: append(parameters, plainColumns(columns)...)}
	for _, c := range m.cells {
		r := m.cellRow(names, c)
		t.rows = append(t.rows, append(slices.Clone(r.Parameters), r.cells(columns)...))
		for _, o := range m.otherOperations(c) {
			t.rows = append(t.rows, append(make([]string, len(names)), o.cells(columns)...))
		}
	}
	return t
}

// otherOperations are rows below a cell's own: the latency of what else it does.
func (m *model) otherOperations(c *cell) (rows []resultRow) {
	for i, o := range c.operations {
		if i > 0 && o.count > 0 {
			rows = append(rows, resultRow{Operation: plain(o.name), P50: millis(o.latency.P50), P95: millis(o.latency.P95), P99: millis(o.latency.P99)})
		}
	}
	return rows
}

func (m *model) cellRow(names []string, c *cell) resultRow {
	r := resultRow{Parameters: m.parameterCells(names, c.parameters), N: strconv.Itoa(len(c.used)),
		BoundBy: plain(boundOf(c.used)), MadeBy: plain(madeOf(c.used)), Verdict: verdictOf(c)}
	if len(c.used) == 0 {
		r.Goodput = none
		return r
	}
	r.Goodput, r.Throughput = interval(c.goodput()), interval(c.estimates[metricThroughput])
	if relative := m.relative(c); m.scales.vary() && relative.N > 0 {
		r.Relative = strconv.FormatFloat(relative.Mean, 'f', 2, 64)
	}
	if o, ok := c.main(); ok {
		r.Operation, r.P50, r.P95, r.P99 = plain(o.name), millis(o.latency.P50), millis(o.latency.P95), millis(o.latency.P99)
	}
	_, share := notOK(outcomes(c.used))
	r.Errors, r.Traffic, r.RTT, r.Spark = percent(share), megabytes(c.traffic().Mean), exact(worstRTT(c.used)), m.spark(c.used[0])
	return r
}

func worstRTT(trials []record.Trial) (worst float64) {
	for _, t := range trials {
		worst = max(worst, t.Fidelity.WorstRTTErrorMS)
	}
	return worst
}

// verdictOf says in a few words whether a cell can be believed.
func verdictOf(c *cell) string {
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
	t := textTable{columns: slices.Concat([]column{{head: "trial"}}, parameters, plainColumns(trialColumns))}
	for _, x := range m.dir.Summary.Trials {
		r := m.trialRow(names, x)
		t.rows = append(t.rows, slices.Concat([]string{r.Trial}, r.Parameters, r.cells(trialColumns)))
	}
	return t
}

func (m *model) trialRow(names []string, t record.Trial) resultRow {
	r := resultRow{Trial: strconv.Itoa(t.ID), Parameters: m.parameterCells(names, t.Parameters), Repetition: strconv.Itoa(t.Repetition), Spark: m.spark(t)}
	if t.State != record.TrialOK {
		r.Goodput, r.Verdict = none, t.State
		return r
	}
	r.Goodput, r.Throughput = trialGoodput(t), figure(t.Throughput)
	if o, ok := m.mainOf(t); ok {
		l := t.Operations[o].Latency()
		r.Operation, r.P50, r.P95, r.P99 = plain(o), millis(l.P50), millis(l.P95), millis(l.P99)
	}
	_, share := notOK(t.Outcomes)
	r.Errors, r.Traffic, r.RTT = percent(share), megabytes(float64(t.Traffic.TotalBytes)), exact(t.Fidelity.WorstRTTErrorMS)
	one := []record.Trial{t}
	r.Time, r.Stopped, r.BoundBy, r.MadeBy, r.Verdict = seconds(t.DurationS), plain(t.Stopped), plain(boundOf(one)), plain(madeOf(one)), plain(t.Verdict.State)
	return r
}

// trialGoodput is with the interval over the trial's own batches, where that means something.
func trialGoodput(t record.Trial) string {
	if half, steady := t.Steady(); steady {
		return plusMinus(t.Goodput, half)
	}
	return figure(t.Goodput)
}

// mainOf names the operation that stands for a trial: that of its cell.
func (m *model) mainOf(t record.Trial) (name string, ok bool) {
	for _, c := range m.cells {
		if slices.ContainsFunc(c.trials, func(x record.Trial) bool { return x.ID == t.ID }) {
			o, _ := c.main()
			return o.name, t.Operations[o.name].Count > 0
		}
	}
	return "", false
}
