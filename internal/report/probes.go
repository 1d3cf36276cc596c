package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"skerry/internal/record"
)

// probeRow is what the short jobs beside a trial's workload saw of one kind of operation, as
// FAULTS tells it: the 95th percentile of each job. Before are the jobs that ended before the
// first event, Median all others; without an event all are in Median.
type probeRow struct {
	Trial, Jobs, Operation, Before, Median, Highest, At, OverTime string
}

// probeRows are those of all trials, in order.
func (m *model) probeRows() (rows []probeRow) {
	for _, t := range m.dir.Summary.Trials {
		rows = append(rows, probesOf(t)...)
	}
	return rows
}

func probesOf(t record.Trial) (rows []probeRow) {
	first, events := 0.0, len(t.Events) > 0
	for i, h := range t.Events {
		if i == 0 || h.AtS < first {
			first = h.AtS
		}
	}
	names := map[string]bool{}
	for _, p := range t.Probes {
		for name := range p.Operations {
			names[name] = true
		}
	}
	jobs := slices.SortedFunc(slices.Values(t.Probes), func(a, b record.Probe) int { return cmp.Compare(a.StartS, b.StartS) })
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row := probeRow{Trial: strconv.Itoa(t.ID), Jobs: strconv.Itoa(len(jobs)), Operation: name, Before: none, Median: none, Highest: none, At: none}
		var before, rest, all []float64
		highest := 0.0
		for _, p := range jobs {
			o := p.Operations[name]
			all = append(all, o.Service.P95)
			if o.Count == 0 {
				continue
			}
			if events && p.StartS+p.DurationS <= first {
				before = append(before, o.Service.P95)
			} else {
				rest = append(rest, o.Service.P95)
			}
			if o.Service.P95 > highest {
				highest, row.Highest, row.At = o.Service.P95, millis(o.Service.P95), figure(p.StartS)
			}
		}
		if len(before) > 0 {
			row.Before = millis(middle(before))
		}
		if len(rest) > 0 {
			row.Median = millis(middle(rest))
		}
		row.OverTime = sparkline(all, sparkWidth)
		rows = append(rows, row)
	}
	return rows
}

// middle is the median; of an even number the higher of the two in the middle.
func middle(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// textProbes prints the table of short jobs, where there were any.
func (m *model) textProbes(p *printer) {
	rows := m.probeRows()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "probes"}, {head: "operation", left: true}, {head: "p95 ms before the event"},
		{head: "p95 ms from then on"}, {head: "highest"}, {head: "at s"}, {head: "p95 over time", left: true, need: 1}}}
	for _, r := range rows {
		t.rows = append(t.rows, []string{r.Trial, r.Jobs, plain(r.Operation), r.Before, r.Median, r.Highest, r.At, r.OverTime})
	}
	p.try(t.write(p.w, 0))
	p.linef("")
}
