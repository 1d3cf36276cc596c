package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry/internal/record"
)

type eventRow struct {
	Trial, Event, At, Baseline, Available, Unresponsive, Takeover, Recover, Dip, Missing string
}

func (m *model) eventRows() (rows []eventRow) {
	for _, t := range m.dir.Summary.Trials {
		for _, h := range t.Events {
			rows = append(rows, newEventRow(t.ID, h))
		}
	}
	return rows
}

func newEventRow(id int, h record.EventImpact) eventRow {
	r := h.Recovery
	row := eventRow{Trial: strconv.Itoa(id), Event: h.Name, At: formatFigure(h.AtS), Baseline: noFigure,
		Available:    formatPercent(r.Availability),
		Unresponsive: formatFigure(r.UnresponsiveS), Takeover: noFigure, Recover: noFigure, Dip: noFigure, Missing: noFigure}
	if h.Kind != h.Name {
		row.Event += " (" + h.Kind + ")"
	}
	if r.TakeoverS != nil {
		row.Takeover = formatFigure(*r.TakeoverS)
	}
	if r.BaselineOps > 0 {
		row.Baseline, row.Dip, row.Missing, row.Recover = formatFigure(r.BaselineOps), formatPercent(r.DipDepth), formatFigure(r.DipOps),
			formatFigure(r.RecoverS)
		if r.Censored {
			row.Recover = "> " + row.Recover
		}
	}
	return row
}

func (m *model) writeEvents(p Printer) {
	rows := m.eventRows()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "event", left: true}, {head: "at s"}, {head: "baseline/s", need: 2},
		{head: "available"},
		{head: "unresponsive s"}, {head: "takeover s", need: 1}, {head: "recovered after s"}, {head: "dip"}, {head: "ops missing", need: 3}}}
	for _, r := range rows {
		t.rows = append(t.rows, []string{r.Trial, sanitize(r.Event), r.At, r.Baseline, r.Available, r.Unresponsive, r.Takeover, r.Recover,
			r.Dip, r.Missing})
	}
	p.Linef("")
	t.write(p, 0)
	p.Linef("")
}

func (m *model) assertionLines() (lines []string) {
	held := 0
	for _, t := range m.dir.Summary.Trials {
		for _, a := range t.Assertions {
			if a.Held {
				held++
				continue
			}
			lines = append(lines, sanitize(fmt.Sprintf("trial %d: %s failed (%s)", t.ID, a.Text, cmp.Or(a.Value, "not measured"))))
		}
	}
	if held > 0 {
		lines = append(lines, Plural(held, "assertion")+" held")
	}
	return slices.Clip(lines)
}

func (m *model) writeAudits(p Printer) {
	for _, t := range m.dir.Summary.Trials {
		a := t.Audit
		if a == nil {
			continue
		}
		history := noFigure
		if h := a.History; h != nil {
			history = fmt.Sprintf("%s (%s of %s)", h.Result, Plural(h.Operations, "operation"), Plural(h.Keys, "record"))
		}
		p.Linef("trial %d: of %s acknowledged writes %s were lost; %s stale copies, %s unexpected values, %s records not read (%s "+
			"read, %s replicas); history %s",
			t.ID, formatCount(a.Acknowledged), formatCount(a.Lost), formatCount(a.Stale), formatCount(a.Unexpected), formatCount(a.Unread),
			formatCount(a.Keys), formatCount(int64(len(a.Replicas))), history)
	}
}

const maxPhaseEvents = 10

// Phases of an event, which ends as record.EventImpact.OverS says, or with what comes next.
//
//	other event ── before ──┤ begun ── during ── over ├── after ── next event, or the end
const (
	phaseBefore = iota
	phaseDuring
	phaseAfter
	phaseCount
)

// phaseRow is the 95th percentile of one kind of operation before, during and after an event. A
// second that an event shares with its neighbours counts as a second of the event.
type phaseRow struct {
	Trial, Event, Operation string
	P95                     [phaseCount]string
}

// window is the time of an event and of the phases around it, in seconds of the measurement.
type window struct{ from, begin, over, until float64 }

func eventWindows(events []record.EventImpact) []window {
	out := make([]window, len(events))
	from := 0.0
	for i, h := range events {
		w := window{from: from, begin: h.AtS, until: math.Inf(1)}
		if i+1 < len(events) {
			w.until = events[i+1].AtS
		}
		w.over = min(h.EndS(), w.until)
		out[i], from = w, w.over
	}
	return out
}

// phase returns the phase of the second that begins at a time, -1 if it belongs to other events.
func (w window) phase(at float64) int {
	switch {
	case at < w.from || at >= w.until:
		return -1
	case at+1 <= w.begin:
		return phaseBefore
	case at < w.over:
		return phaseDuring
	}
	return phaseAfter
}

func (m *model) phaseRows() (rows []phaseRow) {
	for _, t := range m.dir.Summary.Trials {
		if len(t.Events) == 0 || len(t.Events) > maxPhaseEvents {
			continue
		}
		windows := eventWindows(t.Events)
		merged := make([]map[string]*[phaseCount]*hdrhistogram.Histogram, len(windows))
		for i := range merged {
			merged[i] = map[string]*[phaseCount]*hdrhistogram.Histogram{}
		}
		// The latency table reports unreadable files.
		_ = m.dir.Intervals(t.ID, func(log string, at float64, h *hdrhistogram.PackedHistogram) {
			name, ok := strings.CutSuffix(log, ".response")
			if !ok || h.TotalCount() == 0 {
				return
			}
			for i, w := range windows {
				if p := w.phase(at); p >= 0 {
					mergePhase(merged[i], name, p, h)
				}
			}
		})
		for i, h := range t.Events {
			for _, name := range slices.Sorted(maps.Keys(merged[i])) {
				rows = append(rows, newPhaseRow(t.ID, h.Name, name, merged[i][name]))
			}
		}
	}
	return rows
}

func newPhaseRow(trial int, event, operation string, phases *[phaseCount]*hdrhistogram.Histogram) phaseRow {
	row := phaseRow{Trial: strconv.Itoa(trial), Event: event, Operation: operation}
	for p, hist := range phases {
		row.P95[p] = noFigure
		if hist != nil {
			row.P95[p] = formatMillis(float64(hist.ValueAtQuantile(95)))
		}
	}
	return row
}

func mergePhase(all map[string]*[phaseCount]*hdrhistogram.Histogram, name string, phase int, h *hdrhistogram.PackedHistogram) {
	if all[name] == nil {
		all[name] = new([phaseCount]*hdrhistogram.Histogram)
	}
	all[name][phase] = record.MergeHistogram(all[name][phase], h)
}

func (m *model) writePhases(p Printer) {
	rows := m.phaseRows()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "event", left: true}, {head: "operation", left: true},
		{head: "p95 ms before"}, {head: "during"}, {head: "after"}}}
	for _, r := range rows {
		t.rows = append(t.rows, append([]string{r.Trial, sanitize(r.Event), sanitize(r.Operation)}, r.P95[:]...))
	}
	t.write(p, 0)
	p.Linef("")
}

// resizeRow is one membership change: when the request was accepted and when the change was
// complete.
type resizeRow struct {
	Trial, Change, Node, At, Accepted, Complete, Moved, State string
	Bad                                                       bool
}

func (m *model) resizeRows() (rows []resizeRow) {
	for _, t := range m.dir.Summary.Trials {
		events, err := m.dir.Events(t.ID)
		if err != nil {
			m.notes = append(m.notes, err.Error())
		}
		for _, e := range record.PerMember(events) {
			if e.Effect == nil || e.Effect.Member == "" {
				continue
			}
			for _, x := range []struct {
				change record.Membership
				step   *record.Step
			}{{e.Effect.Member, e.Apply}, {e.Effect.Member.Opposite(), e.Revert}} {
				if x.step != nil && x.step.Began != nil {
					row := newResizeRow(e, x.change, x.step)
					row.Trial = strconv.Itoa(t.ID)
					rows = append(rows, row)
				}
			}
		}
	}
	return rows
}

func newResizeRow(e record.Event, change record.Membership, s *record.Step) resizeRow {
	row := resizeRow{Change: string(change), At: formatFigure(s.Began.Seconds()), Accepted: noFigure, Complete: noFigure,
		Moved: noFigure, State: "complete"}
	for _, m := range s.Members {
		row.Change += fmt.Sprintf(" %s to %s", m.From, m.To)
	}
	for i, n := range e.Targets {
		if i > 0 {
			row.Node += ", "
		}
		row.Node += n
	}
	if s.Accepted != nil {
		row.Accepted = formatFigure(s.Accepted.Seconds() - s.Began.Seconds())
	}
	if s.Completed != nil {
		row.Complete = formatFigure(s.Completed.Seconds() - s.Began.Seconds())
	} else {
		row.State, row.Bad = "not complete", true
		if e.State == record.EventFailed {
			row.State = "failed: " + firstLine(e.Error)
		}
	}
	if s.Bytes > 0 {
		row.Moved = formatMegabytes(float64(s.Bytes))
	}
	return row
}

func (m *model) writeResizings(p Printer) {
	rows := m.resizeRows()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "change", left: true}, {head: "node", left: true}, {head: "at s"},
		{head: "accepted after s"}, {head: "complete after s"}, {head: "moved MB", need: 1}, {head: "", left: true}}}
	for _, r := range rows {
		state := ""
		if r.Bad {
			state = sanitize(r.State)
		}
		t.rows = append(t.rows, []string{r.Trial, r.Change, sanitize(r.Node), r.At, r.Accepted, r.Complete, r.Moved, state})
	}
	t.write(p, 0)
	p.Linef("")
}

type probeRow struct {
	Trial, Jobs, Operation, Before, During, Highest, At, OverTime string
}

func (m *model) probeRows() (rows []probeRow) {
	for _, t := range m.dir.Summary.Trials {
		rows = append(rows, trialProbeRows(t)...)
	}
	return rows
}

func trialProbeRows(t record.Trial) (rows []probeRow) {
	for _, p := range t.ProbeStats() {
		row := probeRow{Trial: strconv.Itoa(t.ID), Jobs: strconv.Itoa(len(t.Probes)), Operation: p.Operation,
			Before: noFigure, During: noFigure, Highest: noFigure, At: noFigure, OverTime: sparkline(p.P95US, sparkWidth)}
		if p.BeforeUS > 0 {
			row.Before = formatMillis(p.BeforeUS)
		}
		if p.DuringUS > 0 {
			row.During = formatMillis(p.DuringUS)
		}
		if p.HighestUS > 0 {
			row.Highest, row.At = formatMillis(p.HighestUS), formatFigure(p.HighestAtS)
		}
		rows = append(rows, row)
	}
	return rows
}

func (m *model) writeProbes(p Printer) {
	rows := m.probeRows()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "probes"}, {head: "operation", left: true}, {head: "p95 ms before the event"},
		{head: "during it"}, {head: "highest"}, {head: "at s"}, {head: "p95 over time", left: true, need: 1}}}
	for _, r := range rows {
		t.rows = append(t.rows, []string{r.Trial, r.Jobs, sanitize(r.Operation), r.Before, r.During, r.Highest, r.At, r.OverTime})
	}
	t.write(p, 0)
	p.Linef("")
}
