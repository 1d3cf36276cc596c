// Package recovery measures what an event did to a database's clients: how far goodput fell,
// for how long, and when it was as before. It computes from the seconds of a timeline alone.
//
//	goodput
//	  │▔▔▔▔▔▔▔▔▔▔▔╲ ← event          ╱▔▔▔▔▔▔▔ baseline
//	  │╌╌╌╌╌╌╌╌╌╌╌╌╲╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╱╌╌╌╌╌╌╌╌ 90 % of it
//	  │             ╲   dip area   ╱
//	  │              ▁▁▁▁▁▁▁▁▁▁▁▁▁╱  ← depth
//	  └──────────────┬────────────┬───────── time
//	                 takeover     recovered: from here on it holds for 10 s
package recovery

import (
	"cmp"
	"math"
	"slices"

	"skerry/internal/record"
)

// Rules are what recovery is measured by. Zero fields stand for those of DefaultRules.
type Rules struct {
	// Baseline is how many seconds before an event it is compared with.
	Baseline float64
	// Goodput is the share of the baseline that a second must reach, P99 how many times
	// the baseline's p99 it may take.
	Goodput, P99 float64
	// Hold is how many seconds in a row must do so.
	Hold float64
	// SLA is the p99 in microseconds above which a second violates the service level; 0 is
	// the baseline's times P99.
	SLA float64
}

// DefaultRules are those of docs/recovery.md.
var DefaultRules = Rules{Baseline: 60, Goodput: 0.9, P99: 2, Hold: 10}

func (r Rules) withDefaults() Rules {
	for _, f := range []struct {
		v *float64
		d float64
	}{{&r.Baseline, DefaultRules.Baseline}, {&r.Goodput, DefaultRules.Goodput}, {&r.P99, DefaultRules.P99}, {&r.Hold, DefaultRules.Hold}} {
		if *f.v == 0 {
			*f.v = f.d
		}
	}
	return r
}

// WriteSlot is how finely a Bin tells when writes were acknowledged, in seconds.
const WriteSlot = 0.01

// Bin is what clients saw in about a second.
type Bin struct {
	// At is its begin in seconds since the measurement began, Length how long it is.
	At, Length float64
	// OK, Failed, Unknown and Dropped count operations.
	OK, Failed, Unknown, Dropped int64
	// P99 of the response time of those that ended ok, in microseconds.
	P99 float64
	// Writes has a bit for every WriteSlot since At in which a write was acknowledged.
	Writes []uint64
}

func (b Bin) end() float64 { return b.At + b.Length }

// goodput is operations a second.
func (b Bin) goodput() float64 {
	if b.Length <= 0 {
		return 0
	}
	return float64(b.OK) / b.Length
}

// minBin is the shortest bin that counts, in seconds: what remains at the end of a
// measurement is no rate.
const minBin = 0.5

// MeasureEvent measures what happened from an event at a time until another: the next event, or the
// end of the measurement. Bins are in order of time; those before 0, of the warm-up, are no
// baseline.
func MeasureEvent(bins []Bin, at, until float64, rules Rules) record.Recovery {
	rules = rules.withDefaults()
	bins = slices.DeleteFunc(slices.Clone(bins), func(b Bin) bool { return b.Length < minBin || b.At < 0 })
	before, after := splitBins(bins, at, until, rules.Baseline)
	m := measure{rules: rules, at: at, after: after}
	m.setBaseline(before)
	for _, b := range after {
		m.r.WatchedS += min(b.end(), until) - max(b.At, at)
	}
	m.countRequests()
	m.countUnresponsive()
	m.findTakeover()
	if m.r.BaselineOps > 0 {
		m.findRecovery()
	}
	return m.r
}

// splitBins returns the bins that ended before an event, no longer ago than window, and those
// from the one that the event fell into up to a time.
func splitBins(bins []Bin, at, until, window float64) (before, after []Bin) {
	for _, b := range bins {
		switch {
		case b.end() <= at && b.At >= at-window-b.Length/2:
			before = append(before, b)
		case b.end() > at && b.At < until:
			after = append(after, b)
		}
	}
	return before, after
}

// measure is one event being measured.
type measure struct {
	rules Rules
	at    float64
	after []Bin
	r     record.Recovery
}

// setBaseline compares seconds with seconds: its p99 is the median of those of its seconds,
// since that of all their operations together is of a far rarer event in each.
func (m *measure) setBaseline(before []Bin) {
	var ok int64
	var p99s []float64
	for _, b := range before {
		m.r.BaselineS += b.Length
		ok += b.OK
		if b.OK > 0 {
			p99s = append(p99s, b.P99)
		}
	}
	if m.r.BaselineS > 0 {
		m.r.BaselineOps = float64(ok) / m.r.BaselineS
	}
	if len(p99s) > 0 {
		slices.Sort(p99s)
		m.r.BaselineP99US = p99s[(len(p99s)-1)/2]
	}
}

func (m *measure) countRequests() {
	var ok, all int64
	for _, b := range m.after {
		ok += b.OK
		all += b.OK + b.Failed + b.Unknown + b.Dropped
	}
	if all > 0 {
		m.r.Availability = float64(ok) / float64(all)
	}
}

func (m *measure) countUnresponsive() {
	run := 0.0
	for _, b := range m.after {
		if b.OK > 0 {
			run = 0
			continue
		}
		if run == 0 {
			m.r.UnresponsivePeriods++
		}
		run += b.Length
		m.r.UnresponsiveS += b.Length
		m.r.LongestUnresponsiveS = max(m.r.LongestUnresponsiveS, run)
	}
}

// findTakeover finds the first write that was acknowledged after the event.
func (m *measure) findTakeover() {
	for _, b := range m.after {
		for i := range len(b.Writes) * 64 {
			if b.Writes[i/64]&(1<<(i%64)) == 0 {
				continue
			}
			if slot := b.At + float64(i)*WriteSlot; slot >= m.at {
				took := math.Round((slot-m.at)/WriteSlot) * WriteSlot
				m.r.TakeoverS = &took
				return
			}
		}
	}
}

// meetsBaseline tells whether a second is as good as the baseline's were.
func (m *measure) meetsBaseline(b Bin) bool {
	return b.goodput() >= m.rules.Goodput*m.r.BaselineOps && b.OK > 0 && b.P99 <= m.rules.P99*m.r.BaselineP99US
}

func (m *measure) violatesSLA(b Bin) bool {
	limit := m.rules.SLA
	if limit == 0 {
		limit = m.rules.P99 * m.r.BaselineP99US
	}
	return b.OK == 0 || b.goodput() < m.rules.Goodput*m.r.BaselineOps || b.P99 > limit
}

// findRecovery finds when it was as before for long enough, and what was missing until then.
func (m *measure) findRecovery() {
	since, held, recovered := -1, 0.0, false
	for i, b := range m.after {
		if !m.meetsBaseline(b) {
			since, held = -1, 0
			continue
		}
		if since < 0 {
			since = i
		}
		// A second that is a few milliseconds short is one.
		if held += b.Length; held >= m.rules.Hold-0.05*m.rules.Hold {
			recovered = true
			break
		}
	}
	m.r.Censored, m.r.RecoverS = !recovered, m.r.WatchedS
	if recovered {
		m.r.RecoverS = max(0, m.after[since].At-m.at)
	}
	enough, total := 0.0, 0.0
	for i, b := range m.after {
		lack := m.r.BaselineOps - b.goodput()
		total += b.Length
		if lack <= (1-m.rules.Goodput)*m.r.BaselineOps {
			enough += b.Length
		}
		if m.violatesSLA(b) {
			m.r.SLAViolationS += b.Length
		}
		if lack < 0 {
			m.r.OvershootOps -= lack * b.Length
		} else if !recovered || i < since {
			m.r.DipOps += lack * b.Length
			m.r.DipDepth = max(m.r.DipDepth, lack/m.r.BaselineOps)
		}
	}
	if total > 0 {
		m.r.AvailabilityTime = enough / total
	}
}

// minWatch is how many seconds an event is watched at least: what happens closer behind it
// is part of it.
const minWatch = 1.0

// MeasureEvents measures each of a trial's events that took place, in order of time; end is
// when the measurement ended, in its seconds.
func MeasureEvents(events []record.Event, bins []Bin, end float64, rules Rules) []record.EventImpact {
	events = slices.DeleteFunc(slices.Clone(events), func(e record.Event) bool {
		return e.ID == 0 || e.Apply == nil || e.Apply.Began == nil || e.Apply.Began.Seconds() >= end
	})
	slices.SortStableFunc(events, func(a, b record.Event) int { return cmp.Compare(a.Apply.Began.NS, b.Apply.Began.NS) })
	out := make([]record.EventImpact, 0, len(events))
	for i, e := range events {
		at, until := e.Apply.Began.Seconds(), end
		for _, next := range events[i+1:] {
			if t := next.Apply.Began.Seconds(); t >= at+minWatch {
				until = t
				break
			}
		}
		h := record.EventImpact{Name: cmp.Or(e.Name, e.Kind), Kind: e.Kind, Source: e.Source, Effect: e.Effect, AtS: at, Carried: e.Carried, Recovery: MeasureEvent(bins, at, until, rules)}
		if e.Revert != nil && e.Revert.Completed != nil {
			h.RevertedS = new(float64)
			*h.RevertedS = e.Revert.Completed.Seconds()
		}
		h.AcceptedS, h.CompleteS = elapsed(e.Apply.Began, e.Apply.Accepted), elapsed(e.Apply.Began, e.Apply.Completed)
		out = append(out, h)
	}
	return out
}

// elapsed is the time between two moments, nil where the second did not come.
func elapsed(from, to *record.Moment) *float64 {
	if to == nil {
		return nil
	}
	s := to.Seconds() - from.Seconds()
	return &s
}
