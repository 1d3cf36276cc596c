package report

import (
	"strconv"

	"skerry/internal/record"
)

// probeRow is a record.Probed as tables have it.
type probeRow struct {
	Trial, Jobs, Operation, Before, During, Highest, At, OverTime string
}

// probeRows are those of all trials, in order.
func (m *model) probeRows() (rows []probeRow) {
	for _, t := range m.dir.Summary.Trials {
		rows = append(rows, probesOf(t)...)
	}
	return rows
}

func probesOf(t record.Trial) (rows []probeRow) {
	for _, p := range t.Probed() {
		row := probeRow{Trial: strconv.Itoa(t.ID), Jobs: strconv.Itoa(len(t.Probes)), Operation: p.Operation,
			Before: none, During: none, Highest: none, At: none, OverTime: sparkline(p.P95US, sparkWidth)}
		if p.BeforeUS > 0 {
			row.Before = millis(p.BeforeUS)
		}
		if p.DuringUS > 0 {
			row.During = millis(p.DuringUS)
		}
		if p.HighestUS > 0 {
			row.Highest, row.At = millis(p.HighestUS), figure(p.HighestAtS)
		}
		rows = append(rows, row)
	}
	return rows
}

// textProbes prints the table of short jobs, where there were any.
func (m *model) textProbes(p *printer) {
	rows := m.probeRows()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "probes"}, {head: "operation", left: true}, {head: "p95 ms before the event"},
		{head: "during it"}, {head: "highest"}, {head: "at s"}, {head: "p95 over time", left: true, need: 1}}}
	for _, r := range rows {
		t.rows = append(t.rows, []string{r.Trial, r.Jobs, plain(r.Operation), r.Before, r.During, r.Highest, r.At, r.OverTime})
	}
	p.try(t.write(p.w, 0))
	p.linef("")
}
