package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/evidence/warnings"
)

// Highlight is one of the few findings that a reader should see first.
type Highlight struct {
	// Kind is assertion, audit, failed, trust, effect, recovery, latency or errors.
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Trial is the one that it is about, 0 for all.
	Trial int `json:"trial,omitempty"`
	// Bad marks what a reader must know before believing the rest.
	Bad bool `json:"bad,omitempty"`
}

// highlights are what casts doubt on the figures, and then the largest effect between cells, the
// worst recovery that was seen to its end and the worst that was not (without events, errors or
// the largest change of latency), and where there is no doubt, why the figures can be believed.
func (m *model) highlights() []Highlight {
	doubts := m.doubts()
	var out []Highlight
	for _, d := range doubts {
		out = append(out, Highlight{Kind: string(d.Kind), Bad: true, Trial: d.Trials[0], Text: d.Text})
	}
	out = append(out, m.effectHighlight()...)
	switch worst := m.recoveryHighlights(); {
	case worst != nil:
		out = append(out, worst...)
	default:
		for _, s := range first(m.errorFinding(), m.latencyFinding()) {
			out = append(out, Highlight{Kind: "errors", Text: s})
		}
	}
	if len(doubts) > 0 {
		return out
	}
	for _, s := range m.trustFinding() {
		out = append(out, Highlight{Kind: "trust", Text: s})
	}
	return out
}

// doubts are what a reader must know before any figure.
func (m *model) doubts() []warnings.Doubt {
	return warnings.Of(m.dir.Summary.Trials, m.tally().planned)
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
			if name, ok := m.differ(a, b); ok && a.goodput().Mean > 0 && b.goodput().Mean > 0 {
				all = append(all, effect{name, a, b, stats.Ratio(b.goodput(), a.goodput())})
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
		e.a, e.b, e.ratio = e.b, e.a, stats.Ratio(e.a.goodput(), e.b.goodput())
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
		figure(e.ratio.Mean), interval, figure(e.a.goodput().Mean), figure(e.b.goodput().Mean))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
