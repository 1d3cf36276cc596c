// Package recovery measures the effect of an event on a database's clients: the loss of goodput, its duration, and the
// time until recovery. It uses the seconds of a timeline only.
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

// Rules define recovery. A zero field means the value of DefaultRules.
type Rules struct {
	// Baseline is the length of the reference period before an event, in seconds.
	Baseline float64
	// Goodput is the share of the baseline that a second must reach; P99 is the maximum multiple of the baseline's p99.
	Goodput, P99 float64
	// Hold is the number of consecutive seconds that must meet the limits.
	Hold float64
	// SLA is the p99 in microseconds above which a second violates the service level; 0 means the baseline's p99 times
	// P99.
	SLA float64
}

// defaultRules are those of docs/recovery.md.
var defaultRules = Rules{Baseline: 60, Goodput: 0.9, P99: 2, Hold: 10}

func (r Rules) withDefaults() Rules {
	for _, f := range []struct {
		v *float64
		d float64
	}{{&r.Baseline, defaultRules.Baseline}, {&r.Goodput, defaultRules.Goodput}, {&r.P99, defaultRules.P99}, {&r.Hold, defaultRules.Hold}} {
		if *f.v == 0 {
			*f.v = f.d
		}
	}
	return r
}

const writeSlotSeconds = float64(record.WriteSlot) / 1e9

// Bin is about one second of the clients' operations.
type Bin struct {
	// At is its start in seconds since the measurement began; Length is in seconds.
	At, Length float64
	// OK, Failed, Unknown and Dropped count operations.
	OK, Failed, Unknown, Dropped int64
	// P99 is that of the response time of ok operations, in microseconds.
	P99 float64
	// Writes has a bit for every record.WriteSlot since At in which a write was acknowledged.
	Writes []uint64
}

func (b Bin) end() float64 { return b.At + b.Length }

func (b Bin) goodput() float64 {
	if b.Length <= 0 {
		return 0
	}
	return float64(b.OK) / b.Length
}

// minBin is the shortest bin that counts, in seconds; the remainder of a measurement gives no rate.
const minBin = 0.5

// measureEvent measures the time from an event until the next event or the end of the measurement. Bins are ordered by
// time. Bins before 0 (warm-up) are not part of the baseline.
func measureEvent(bins []Bin, at, until float64, rules Rules) record.Recovery {
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

// splitBins returns the bins that ended within window before an event, and those from the event's own bin until a time.
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

type measure struct {
	rules Rules
	at    float64
	after []Bin
	r     record.Recovery
}

// setBaseline computes the baseline. Its p99 is the median of the p99 of its seconds, which compares with single
// seconds; the p99 of all their operations together would be that of a far rarer event.
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

func (m *measure) findTakeover() {
	for _, b := range m.after {
		for i := range len(b.Writes) * 64 {
			if b.Writes[i/64]&(1<<(i%64)) == 0 {
				continue
			}
			if slot := b.At + float64(i)*writeSlotSeconds; slot >= m.at {
				took := math.Round((slot-m.at)/writeSlotSeconds) * writeSlotSeconds
				m.r.TakeoverS = &took
				return
			}
		}
	}
}

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
		// Accept seconds that are a few milliseconds short.
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

// minWatch is the minimum observed time of an event, in seconds: a later event within it counts as part of the first.
const minWatch = 1.0

// MeasureEvents measures each of a trial's events that took place, ordered by time. end is the end of the measurement
// in its seconds.
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
		h := record.EventImpact{Name: cmp.Or(e.Name, e.Kind), Kind: e.Kind, Source: e.Source, Effect: e.Effect, AtS: at, Carried: e.Carried,
			Recovery: measureEvent(bins, at, until, rules)}
		if e.Revert != nil && e.Revert.Completed != nil {
			h.RevertedS = new(float64)
			*h.RevertedS = e.Revert.Completed.Seconds()
		}
		h.AcceptedS, h.CompleteS = elapsed(e.Apply.Began, e.Apply.Accepted), elapsed(e.Apply.Began, e.Apply.Completed)
		out = append(out, h)
	}
	return out
}

// elapsed is the time between two moments, nil if the second did not occur.
func elapsed(from, to *record.Moment) *float64 {
	if to == nil {
		return nil
	}
	s := to.Seconds() - from.Seconds()
	return &s
}
