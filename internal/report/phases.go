package report

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry/internal/record"
)

// mostPhased is of how many events a trial's phases are told: of more the timeline tells more.
const mostPhased = 10

// Phases of an event, which ends as record.Happening.OverS says, or with what comes next.
//
//	other event ── before ──┤ begun ── during ── over ├── after ── next event, or the end
const (
	phaseBefore = iota
	phaseDuring
	phaseAfter
	phases
)

// phaseRow is the 95th percentile of one kind of operation before, during and after an event,
// as FAULTS compares them. Seconds that an event shares with what is beside it count as its own.
type phaseRow struct {
	Trial, Event, Operation string
	P95                     [phases]string
}

// window is when an event was in force, and what it lies between.
type window struct{ from, begin, over, until float64 }

func windowsOf(events []record.Happening) []window {
	out := make([]window, len(events))
	from := 0.0
	for i, h := range events {
		w := window{from: from, begin: h.AtS, until: math.Inf(1)}
		if i+1 < len(events) {
			w.until = events[i+1].AtS
		}
		w.over = min(h.OverS(), w.until)
		out[i], from = w, w.over
	}
	return out
}

// phase of the second that begins at a time; -1 for one of other events.
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

// phaseRows are those of all trials with events, in order.
func (m *model) phaseRows() (rows []phaseRow) {
	for _, t := range m.dir.Summary.Trials {
		if len(t.Events) == 0 || len(t.Events) > mostPhased {
			continue
		}
		windows := windowsOf(t.Events)
		merged := make([]map[string]*[phases]*hdrhistogram.Histogram, len(windows))
		for i := range merged {
			merged[i] = map[string]*[phases]*hdrhistogram.Histogram{}
		}
		// What cannot be read the table of latencies tells of.
		_ = m.dir.Intervals(t.ID, func(log string, at float64, h *hdrhistogram.PackedHistogram) {
			name, ok := strings.CutSuffix(log, ".response")
			if !ok || h.TotalCount() == 0 {
				return
			}
			for i, w := range windows {
				if p := w.phase(at); p >= 0 {
					mergeInto(merged[i], name, p, h)
				}
			}
		})
		for i, h := range t.Events {
			for _, name := range slices.Sorted(maps.Keys(merged[i])) {
				row := phaseRow{Trial: strconv.Itoa(t.ID), Event: h.Name, Operation: name}
				for p, hist := range merged[i][name] {
					row.P95[p] = none
					if hist != nil {
						row.P95[p] = millis(float64(hist.ValueAtQuantile(95)))
					}
				}
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func mergeInto(all map[string]*[phases]*hdrhistogram.Histogram, name string, phase int, h *hdrhistogram.PackedHistogram) {
	if all[name] == nil {
		all[name] = new([phases]*hdrhistogram.Histogram)
	}
	all[name][phase] = record.Merge(all[name][phase], h)
}

// textPhases prints the table of operations around events, where there were any.
func (m *model) textPhases(p *printer) {
	rows := m.phaseRows()
	if len(rows) == 0 {
		return
	}
	t := textTable{columns: []column{{head: "trial"}, {head: "event", left: true}, {head: "operation", left: true},
		{head: "p95 ms before"}, {head: "during"}, {head: "after"}}}
	for _, r := range rows {
		t.rows = append(t.rows, append([]string{r.Trial, plain(r.Event), plain(r.Operation)}, r.P95[:]...))
	}
	p.try(t.write(p.w, 0))
	p.linef("")
}
