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

// assertionRow is one line of an experiment's assert in one trial.
type assertionRow struct {
	Trial, Text, Value string
	Held               bool
}

func (m *model) assertionRows() (rows []assertionRow) {
	for _, t := range m.dir.Summary.Trials {
		for _, a := range t.Assertions {
			rows = append(rows, assertionRow{strconv.Itoa(t.ID), a.Text, cmp.Or(a.Value, none), a.Held})
		}
	}
	return rows
}

// auditRow is what reading acknowledged writes back found in one trial.
type auditRow struct {
	Trial, Acknowledged, InDoubt, Keys, Lost, Stale, Unexpected, Unread, Replicas, History string

	Bad bool
}

func (m *model) audits() (rows []auditRow) {
	for _, t := range m.dir.Summary.Trials {
		a := t.Audit
		if a == nil {
			continue
		}
		row := auditRow{Trial: strconv.Itoa(t.ID), Acknowledged: count(a.Acknowledged), InDoubt: count(a.InDoubt), Keys: count(a.Keys), Lost: count(a.Lost),
			Stale: count(a.Stale), Unexpected: count(a.Unexpected), Unread: count(a.Unread), Replicas: count(int64(len(a.Replicas))), History: none,
			Bad: a.Lost+a.Stale+a.Unexpected+a.Unread > 0}
		if a.History != nil {
			row.History = fmt.Sprintf("%s (%s of %s)", a.History.Result, plural(a.History.Operations, "operation"), plural(a.History.Keys, "record"))
			row.Bad = row.Bad || a.History.Result == record.Violated
		}
		rows = append(rows, row)
	}
	return rows
}

// textAudits says what audits found.
func (m *model) textAudits(p *printer) {
	for _, r := range m.audits() {
		p.linef("trial %s: of %s acknowledged writes %s were lost; %s stale copies, %s unexpected values, %s records not read (%s read, %s replicas); history %s",
			r.Trial, r.Acknowledged, r.Lost, r.Stale, r.Unexpected, r.Unread, r.Keys, r.Replicas, r.History)
	}
}
