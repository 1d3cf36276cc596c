package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"skerry/internal/record"
)

// happeningRow is one event of a trial as tables show it.
type happeningRow struct {
	Trial, Event, At, Baseline, Available, Unresponsive, Takeover, Recover, Dip, Missing string
}

// happenings are the events of all trials, in order.
func (m *model) happenings() (rows []happeningRow) {
	for _, t := range m.dir.Summary.Trials {
		for _, h := range t.Events {
			rows = append(rows, rowOf(t.ID, h))
		}
	}
	return rows
}

func rowOf(id int, h record.Happening) happeningRow {
	r := h.Recovery
	row := happeningRow{Trial: strconv.Itoa(id), Event: h.Name, At: figure(h.AtS), Baseline: none, Available: percent(r.Availability),
		Unresponsive: figure(r.UnresponsiveS), Takeover: none, Recover: none, Dip: none, Missing: none}
	if h.Kind != h.Name {
		row.Event += " (" + h.Kind + ")"
	}
	if r.TakeoverS != nil {
		row.Takeover = figure(*r.TakeoverS)
	}
	if r.BaselineOps > 0 {
		row.Baseline, row.Dip, row.Missing, row.Recover = figure(r.BaselineOps), percent(r.DipDepth), figure(r.DipOps), figure(r.RecoverS)
		if r.Censored {
			row.Recover = "> " + row.Recover
		}
	}
	return row
}

// textEvents prints the table of events, where there were any.
func (m *model) textEvents(p *printer) {
	rows := m.happenings()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "event", left: true}, {head: "at s"}, {head: "baseline/s", need: 2}, {head: "available"},
		{head: "unresponsive s"}, {head: "takeover s", need: 1}, {head: "recovered after s"}, {head: "dip"}, {head: "ops missing", need: 3}}}
	for _, r := range rows {
		t.rows = append(t.rows, []string{r.Trial, plain(r.Event), r.At, r.Baseline, r.Available, r.Unresponsive, r.Takeover, r.Recover, r.Dip, r.Missing})
	}
	p.linef("")
	p.try(t.write(p.w, 0))
	p.linef("")
}

// assertions says which did not hold, and that all others did.
func (m *model) assertions() (lines []string) {
	held := 0
	for _, t := range m.dir.Summary.Trials {
		for _, a := range t.Assertions {
			if a.Held {
				held++
				continue
			}
			lines = append(lines, plain(fmt.Sprintf("trial %d: %s did not hold: it is %s", t.ID, a.Text, cmp.Or(a.Value, "not measured"))))
		}
	}
	if held > 0 {
		lines = append(lines, plural(held, "assertion")+" held")
	}
	return slices.Clip(lines)
}

// textAudits says what reading acknowledged writes back found in each trial.
func (m *model) textAudits(p *printer) {
	for _, t := range m.dir.Summary.Trials {
		a := t.Audit
		if a == nil {
			continue
		}
		history := none
		if h := a.History; h != nil {
			history = fmt.Sprintf("%s (%s of %s)", h.Result, plural(h.Operations, "operation"), plural(h.Keys, "record"))
		}
		p.linef("trial %d: of %s acknowledged writes %s were lost; %s stale copies, %s unexpected values, %s records not read (%s read, %s replicas); history %s",
			t.ID, count(a.Acknowledged), count(a.Lost), count(a.Stale), count(a.Unexpected), count(a.Unread), count(a.Keys), count(int64(len(a.Replicas))), history)
	}
}
