package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"skerry/internal/record"
)

// linkRow holds what was set on one link against what was measured over trials.
type linkRow struct {
	Link      string
	Set       string // RTT
	Measured  string // smallest to largest median
	Worst     string // largest deviation
	Bandwidth string // set, both directions
	Got       string // measured, both directions
	Off       string // largest relative error
	Bad       bool   // some trial did not get an answer
}

// linkTable is the links at one scale.
type linkTable struct {
	Title string
	Rows  []linkRow
}

// linkTables compare every link that was probed, one table a scale.
func (m *model) linkTables() (tables []linkTable) {
	for _, scale := range m.scales.values {
		var trials []record.Trial
		for _, c := range m.cells {
			if c.scale != scale {
				continue
			}
			for _, t := range c.trials {
				if len(t.Fidelity.Links) > 0 {
					trials = append(trials, t)
				}
			}
		}
		if rows := linkRows(trials); len(rows) > 0 {
			tables = append(tables, linkTable{Title: fmt.Sprintf("Scale %s: %s, %s", m.scales.text(scale), plural(len(rows), "link"), plural(len(trials), "trial")), Rows: rows})
		}
	}
	return tables
}

// links of the same name with the same setting are one row.
type linkKey struct {
	from, to string
	rtt      float64
	ab, ba   int64
	real     bool
}

func linkRows(trials []record.Trial) (rows []linkRow) {
	var keys []linkKey
	seen := map[linkKey][]record.LinkFidelity{}
	for _, t := range trials {
		for _, l := range t.Fidelity.Links {
			k := linkKey{l.From, l.To, l.SetRTTMS, l.SetABbps, l.SetBAbps, l.Real}
			if seen[k] == nil {
				keys = append(keys, k)
			}
			seen[k] = append(seen[k], l)
		}
	}
	for _, k := range keys {
		rows = append(rows, k.row(seen[k]))
	}
	return rows
}

func (k linkKey) row(links []record.LinkFidelity) linkRow {
	lo, hi, worst, off := math.Inf(1), math.Inf(-1), 0.0, 0.0
	ab, ba := math.Inf(1), math.Inf(1)
	r := linkRow{Link: k.from + " – " + k.to, Set: figure(k.rtt) + " ms", Measured: none, Worst: none, Bandwidth: "unlimited", Got: none, Off: none}
	for _, l := range links {
		if !l.Answered {
			r.Bad = true
			continue
		}
		lo, hi = min(lo, l.RTTMS), max(hi, l.RTTMS)
		if math.Abs(l.RTTErrorMS) >= math.Abs(worst) {
			worst = l.RTTErrorMS
		}
		for _, d := range []struct {
			set, got int64
			least    *float64
		}{{l.SetABbps, l.ABbps, &ab}, {l.SetBAbps, l.BAbps, &ba}} {
			if d.set > 0 && d.got > 0 {
				*d.least = min(*d.least, float64(d.got))
				off = cmp.Or(largest(off, float64(d.got)/float64(d.set)-1), off)
			}
		}
	}
	if !math.IsInf(lo, 1) {
		r.Measured, r.Worst = span(lo, hi, exact)+" ms", signed(worst)+" ms"
	}
	if k.real {
		r.Set, r.Worst, r.Bandwidth, r.Measured = "as it is", none, "as it is", r.Measured+meanwhile(links)
		return r
	}
	if k.ab > 0 || k.ba > 0 {
		r.Bandwidth = both(float64(k.ab), float64(k.ba))
	}
	if !math.IsInf(ab, 1) || !math.IsInf(ba, 1) {
		r.Got, r.Off = both(finite(ab), finite(ba)), signed(100*off)+" %"
	}
	return r
}

// meanwhile is what a real link was while trials measured: the largest figures of all of them.
func meanwhile(links []record.LinkFidelity) string {
	var worst record.LinkSeen
	for _, l := range links {
		if l.Seen == nil {
			continue
		}
		worst.MedianMS, worst.P99MS = max(worst.MedianMS, l.Seen.MedianMS), max(worst.P99MS, l.Seen.P99MS)
		worst.Sent, worst.Lost = worst.Sent+l.Seen.Sent, worst.Lost+l.Seen.Lost
	}
	if worst.Sent == 0 {
		return ""
	}
	return fmt.Sprintf("; meanwhile %s ms, p99 %s ms, %s lost", exact(worst.MedianMS), exact(worst.P99MS), percent(worst.Loss()))
}

// largest returns the one of two errors that is farther from 0.
func largest(a, b float64) float64 {
	if math.Abs(b) > math.Abs(a) {
		return b
	}
	return a
}

func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return 0
	}
	return v
}

// both writes the bandwidths of two directions, once where they are alike.
func both(ab, ba float64) string {
	if a, b := bits(ab), bits(ba); a != b && ab > 0 && ba > 0 {
		return a + " / " + b
	}
	return bits(max(ab, ba))
}

// exact writes milliseconds to the hundredth.
func exact(v float64) string { return fmt.Sprintf("%.2f", v) }

func span(lo, hi float64, write func(float64) string) string {
	a, b := write(lo), write(hi)
	if a == b {
		return a
	}
	return a + " – " + b
}

func signed(v float64) string {
	if v < 0 {
		return "−" + exact(-v)
	}
	return "+" + exact(v)
}

// evidenceRow is what else was seen of the emulation while a trial ran.
type evidenceRow struct {
	Trial, Cell                          string
	RTT, Late, Drops, Client, ClientLate string
	Host, Others, Steal                  string
	Verdict                              string
	Reasons                              []string
	Replaced                             []string // attempts that this one stands in for
	Disturbed                            []string // the machine, and changed nothing
	Bad                                  bool
}

func (m *model) evidence() (rows []evidenceRow) {
	for _, c := range m.cells {
		for _, t := range c.trials {
			rows = append(rows, m.evidenceRow(c, t))
		}
	}
	slices.SortStableFunc(rows, func(a, b evidenceRow) int { return cmp.Compare(truth(b.Bad), truth(a.Bad)) })
	return rows
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (m *model) evidenceRow(c *cell, t record.Trial) evidenceRow {
	f := t.Fidelity
	r := evidenceRow{Trial: fmt.Sprint(t.ID), Cell: m.trialName(c, t), Verdict: t.Verdict.State, Reasons: t.Verdict.Reasons}
	if t.State != record.TrialOK {
		r.Verdict, r.Bad = t.State, true
		if t.Error != "" {
			r.Reasons = []string{t.Error}
		}
		return r
	}
	r.Bad, r.Disturbed = t.Verdict.State != record.Valid, t.Verdict.Notes
	for _, x := range t.Replaced {
		r.Replaced = append(r.Replaced, replaced(x))
	}
	r.RTT, r.Late, r.Drops = exact(f.WorstRTTErrorMS), "not known", count(f.EmulatorDrops)
	if f.EmulatorLateP99US >= 0 {
		r.Late = millis(f.EmulatorLateP99US)
	}
	r.Client, r.ClientLate = exact(f.ClientCPU), millis(f.ClientLateP99US)
	r.Host = fmt.Sprintf("%s of %d", exact(f.HostCPU), f.HostCores)
	r.Others = "not known"
	if f.OthersCPU != nil {
		r.Others = exact(*f.OthersCPU)
	}
	r.Steal = percent(f.StealShare)
	return r
}

func (m *model) trialName(c *cell, t record.Trial) string {
	s := m.name(c)
	if c.planned > 1 {
		s += fmt.Sprintf(", repetition %d", t.Repetition)
	}
	return s
}
