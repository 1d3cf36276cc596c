package report

import (
	"fmt"
	"slices"
	"strconv"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
)

// sideTables are tables of what only some trials have: several workloads, errors.
type sideTable struct {
	Rows    [][]string
	columns []column
}

// poolTable is a row a workload of each trial with several.
func (m *model) poolTable() sideTable {
	t := sideTable{columns: []column{{head: "trial"}, {head: "workload", left: true}, {head: "client", left: true}, {head: "threads"},
		{head: "goodput/s"}, {head: "p50 ms"}, {head: "p95 ms"}, {head: "p99 ms"}, {head: "errors"}, {head: "client cores"}, {head: "bound by", left: true}}}
	for _, x := range m.dir.Summary.Trials {
		for _, p := range x.Pools {
			l := p.All.Latency()
			_, share := notOK(p.Outcomes)
			t.Rows = append(t.Rows, []string{strconv.Itoa(x.ID), plain(p.Workload), plain(p.Client), strconv.Itoa(p.Threads), figure(p.Goodput),
				millis(l.P50), millis(l.P95), millis(l.P99), percent(share), figure(p.ClientCPU), plain(p.Bound.By)})
		}
	}
	return t
}

// mostErrors is how many kinds of error a trial's rows tell of.
const mostErrors = 8

// errorTable is a row a kind of error of each trial, with when it was.
func (m *model) errorTable() sideTable {
	t := sideTable{columns: []column{{head: "trial"}, {head: "operation", left: true}, {head: "outcome", left: true}, {head: "class", left: true},
		{head: "node", left: true}, {head: "count"}, {head: "from s"}, {head: "to s"}, {head: "over time", left: true, need: 1}}}
	for _, x := range m.dir.Summary.Trials {
		if len(x.Errors) == 0 {
			continue
		}
		rows, err := m.dir.ErrorSeconds(x.ID)
		if err != nil || len(rows) == 0 { // a run of an older version, or damage that others tell of
			continue
		}
		worst := slices.SortedStableFunc(slices.Values(x.Errors), func(a, b record.ErrorCount) int { return int(b.Count - a.Count) })
		for i, e := range worst {
			if i == mostErrors {
				break
			}
			t.Rows = append(t.Rows, errorSpan(x, e, rows))
		}
	}
	return t
}

func errorSpan(x record.Trial, e record.ErrorCount, rows []record.ErrorSecond) []string {
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
		for len(values) <= int(r.T) { // what drained after the end
			values = append(values, 0)
		}
		values[r.T] += float64(r.Count)
	}
	return []string{strconv.Itoa(x.ID), plain(e.Operation), e.Outcome, plain(e.Class), plain(e.Node), strconv.FormatInt(e.Count, 10), first, last, sparkline(values, sparkWidth)}
}

// textSides prints the tables that have rows.
func (m *model) textSides(p *printer) {
	for _, s := range []sideTable{m.poolTable(), m.errorTable()} {
		if len(s.Rows) == 0 {
			continue
		}
		p.try((&textTable{columns: s.columns, rows: s.Rows}).write(p.w, 0))
		p.linef("")
	}
}

// loadFindings say how tables were loaded, by database.
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
		out = append(out, fmt.Sprintf("The table of %s was loaded at %s records a second, %s of them, at the setup's distance: a request took %s ms, %s ms at the 95th percentile (medians over %s).",
			plain(name), figure(stats.Median(l.rate)), figure(stats.Median(l.records)), millis(stats.Median(l.p50)), millis(stats.Median(l.p95)), plural(len(l.rate), "trial")))
	}
	return out
}

// dataFinding says how much of what crossed links was between data nodes.
func (m *model) dataFinding() []string {
	var data, ok, total float64
	for _, c := range m.cells {
		for _, t := range c.used {
			data, total, ok = data+float64(t.Traffic.DataBytes), total+float64(t.Traffic.TotalBytes), ok+float64(t.Outcomes.OK)
		}
	}
	if total == 0 || ok == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Of the bytes on all links %s were between data nodes: %s bytes an operation.", percent(data/total), figure(data/ok))}
}
