package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"skerry/internal/record"
	"skerry/internal/stats"
)

// Highlight is one of the few findings that a reader should see first.
type Highlight struct {
	// Kind is effect, recovery, latency, errors or trust.
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Trial is the one that it is about, 0 for all.
	Trial int `json:"trial,omitempty"`
	// Bad marks what a reader must know before believing the rest.
	Bad bool `json:"bad,omitempty"`
}

// highlights are three: the largest effect between cells, the worst recovery (without events,
// errors or the largest change of latency), and whether the figures can be believed.
func (m *model) highlights() []Highlight {
	out := m.effectHighlight()
	switch worst := m.recoveryHighlight(); {
	case worst != nil:
		out = append(out, *worst)
	default:
		for _, s := range first(m.errorFinding(), m.latencyFinding()) {
			out = append(out, Highlight{Kind: "errors", Text: s})
		}
	}
	return append(out, m.trustHighlight()...)
}

// first returns the first list that says something; that all went well waits behind the others.
func first(errors, latency []string) []string {
	if len(latency) > 0 && (len(errors) == 0 || strings.HasPrefix(errors[0], "All of ")) {
		return latency
	}
	return errors
}

// effect is the goodput of one cell as a multiple of that of another, which differs from it in
// one parameter.
type effect struct {
	parameter string
	a, b      *cell
	ratio     stats.Estimate
}

// clear tells whether the interval of the ratio leaves out 1.
func (e effect) clear() bool {
	return e.ratio.HasInterval() && math.Abs(e.ratio.Mean-1) > e.ratio.HalfWidth
}

func (m *model) effectHighlight() []Highlight {
	var all []effect
	for i, a := range m.cells {
		for _, b := range m.cells[i+1:] {
			if name, ok := m.differ(a, b); ok && a.goodput.Mean > 0 && b.goodput.Mean > 0 {
				all = append(all, effect{name, a, b, stats.Ratio(b.goodput, a.goodput)})
			}
		}
	}
	if len(all) == 0 {
		return alone(m.rankFinding())
	}
	e := slices.MaxFunc(all, func(x, y effect) int {
		return cmp.Or(cmp.Compare(truth(x.clear()), truth(y.clear())),
			cmp.Compare(math.Abs(math.Log(x.ratio.Mean)), math.Abs(math.Log(y.ratio.Mean))))
	})
	if e.ratio.Mean > 1 { // told as a loss: from the better to the worse
		e.a, e.b, e.ratio = e.b, e.a, stats.Ratio(e.a.goodput, e.b.goodput)
	}
	return []Highlight{{Kind: "effect", Text: m.effectSentence(e)}}
}

func alone(sentences []string) (out []Highlight) {
	for _, s := range sentences {
		out = append(out, Highlight{Kind: "effect", Text: s})
	}
	return out
}

// differ tells whether two measured cells differ in exactly one parameter, and in which.
func (m *model) differ(a, b *cell) (string, bool) {
	if len(a.used) == 0 || len(b.used) == 0 {
		return "", false
	}
	var names []string
	for _, n := range m.vary {
		if compareValues(n, a.parameters[n], b.parameters[n]) != 0 {
			names = append(names, n)
		}
	}
	if len(names) != 1 {
		return "", false
	}
	return names[0], true
}

func (m *model) effectSentence(e effect) string {
	var rest []string
	for _, n := range m.vary {
		if n != e.parameter {
			rest = append(rest, n)
		}
	}
	with := ""
	if len(rest) > 0 {
		with = " with " + say(rest, e.a.parameters)
	}
	interval := "one repetition each, so without an interval"
	if e.ratio.HasInterval() {
		interval = fmt.Sprintf("95 %% CI %s to %s", figure(max(0, e.ratio.Mean-e.ratio.HalfWidth)), figure(e.ratio.Mean+e.ratio.HalfWidth))
		if !e.clear() {
			interval += ", so no difference was shown"
		}
	}
	return fmt.Sprintf("The largest effect: going from %s %s to %s%s multiplies goodput by %s (%s): %s to %s operations a second.",
		shortName(e.parameter), m.valueName(e.parameter, e.a.parameters[e.parameter]), m.valueName(e.parameter, e.b.parameters[e.parameter]), with,
		figure(e.ratio.Mean), interval, figure(e.a.goodput.Mean), figure(e.b.goodput.Mean))
}

// recoveryHighlight names the event after which clients waited longest; nil without events.
func (m *model) recoveryHighlight() *Highlight {
	var worst record.Happening
	trial, seen := 0, 0
	for _, t := range m.dir.Summary.Trials {
		for _, h := range t.Events {
			seen++
			if trial == 0 || compareRecovery(h.Recovery, worst.Recovery) > 0 {
				worst, trial = h, t.ID
			}
		}
	}
	if trial == 0 {
		return nil
	}
	r := worst.Recovery
	s := fmt.Sprintf("After “%s” at %s s in trial %d ", worst.Name, figure(worst.AtS), trial)
	if seen > 1 {
		s = fmt.Sprintf("The worst recovery of %s: after “%s” at %s s in trial %d ", plural(seen, "event"), worst.Name, figure(worst.AtS), trial)
	}
	switch {
	case r.BaselineOps <= 0:
		s += "nothing can be said about goodput, since there was none before it"
	case r.Censored:
		s += fmt.Sprintf("clients were not served as before within the %s s that were watched", figure(r.WatchedS))
	default:
		s += fmt.Sprintf("it took %s s until clients were served as before", figure(r.RecoverS))
	}
	if r.BaselineOps > 0 {
		s += fmt.Sprintf("; in the worst second %s of goodput was missing", percent(r.DipDepth))
	}
	if r.UnresponsiveS > 0 {
		s += fmt.Sprintf("; %s s passed without any operation that ended ok", figure(r.UnresponsiveS))
	}
	return &Highlight{Kind: "recovery", Text: s + ".", Trial: trial}
}

func compareRecovery(a, b record.Recovery) int {
	return cmp.Or(cmp.Compare(truth(a.Censored), truth(b.Censored)), cmp.Compare(a.RecoverS, b.RecoverS),
		cmp.Compare(a.UnresponsiveS, b.UnresponsiveS), cmp.Compare(a.DipDepth, b.DipDepth))
}

// trustHighlight says whether the trials can be believed and, of those that cannot, why.
func (m *model) trustHighlight() []Highlight {
	n := m.tally()
	for _, t := range m.dir.Summary.Trials {
		if t.State == record.TrialOK && t.Verdict.State != record.Valid && len(t.Verdict.Reasons) > 0 {
			return []Highlight{{Kind: "trust", Bad: true, Trial: t.ID, Text: fmt.Sprintf("%d of %s measured with doubt. Trial %d: %s.",
				n.suspect, plural(n.planned, "trial"), t.ID, strings.TrimSuffix(strings.Join(t.Verdict.Reasons, "; "), "."))}}
		}
	}
	if n.failed > 0 {
		return []Highlight{{Kind: "trust", Bad: true, Text: fmt.Sprintf("%d of %s failed and measured nothing.", n.failed, plural(n.planned, "trial"))}}
	}
	var out []Highlight
	for _, s := range m.trustFinding() {
		out = append(out, Highlight{Kind: "trust", Text: s})
	}
	return out
}
