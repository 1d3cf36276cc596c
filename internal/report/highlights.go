package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/evidence/warnings"
	"skerry/internal/record"
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
	doubts := m.warnings()
	var out []Highlight
	for _, d := range doubts {
		out = append(out, Highlight{Kind: string(d.Kind), Bad: true, Trial: d.Trials[0], Text: d.Text})
	}
	out = append(out, m.effectHighlight()...)
	switch worst := m.recoveryHighlights(); {
	case worst != nil:
		out = append(out, worst...)
	default:
		for _, s := range latencyUnlessErrors(m.errorFinding(), m.latencyFinding()) {
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

// warnings are what a reader must know before any figure.
func (m *model) warnings() []warnings.Warning {
	return warnings.Collect(m.dir.Summary.Trials, m.tally().planned)
}

// latencyUnlessErrors returns the first list that says something; that all went well waits behind the others.
func latencyUnlessErrors(errors, latency []string) []string {
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

// isSignificant tells whether the interval of the ratio leaves out 1.
func (e effect) isSignificant() bool {
	return e.ratio.HasInterval() && math.Abs(e.ratio.Mean-1) > e.ratio.HalfWidth
}

func (m *model) effectHighlight() []Highlight {
	var all []effect
	for i, a := range m.cells {
		for _, b := range m.cells[i+1:] {
			if name, ok := m.differingParameter(a, b); ok && a.goodput().Mean > 0 && b.goodput().Mean > 0 {
				all = append(all, effect{name, a, b, stats.EstimateRatio(b.goodput(), a.goodput())})
			}
		}
	}
	if len(all) == 0 {
		return effectHighlights(m.extremesFinding())
	}
	e := slices.MaxFunc(all, func(x, y effect) int {
		return cmp.Or(cmp.Compare(boolToInt(x.isSignificant()), boolToInt(y.isSignificant())),
			cmp.Compare(math.Abs(math.Log(x.ratio.Mean)), math.Abs(math.Log(y.ratio.Mean))))
	})
	if e.ratio.Mean > 1 { // told as a loss: from the better to the worse
		e.a, e.b, e.ratio = e.b, e.a, stats.EstimateRatio(e.a.goodput(), e.b.goodput())
	}
	return []Highlight{{Kind: "effect", Text: m.effectSentence(e)}}
}

func effectHighlights(sentences []string) (out []Highlight) {
	for _, s := range sentences {
		out = append(out, Highlight{Kind: "effect", Text: s})
	}
	return out
}

// differingParameter tells whether two measured cells differ in exactly one parameter, and in which.
func (m *model) differingParameter(a, b *cell) (string, bool) {
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
		with = " with " + describeParameters(rest, e.a.parameters)
	}
	interval := "one repetition each, so without an interval"
	if e.ratio.HasInterval() {
		interval = fmt.Sprintf("95 %% CI %s to %s", formatFigure(max(0, e.ratio.Mean-e.ratio.HalfWidth)), formatFigure(e.ratio.Mean+e.ratio.HalfWidth))
		if !e.isSignificant() {
			interval += ", so no difference was shown"
		}
	}
	return fmt.Sprintf("The largest effect: going from %s %s to %s%s multiplies goodput by %s (%s): %s to %s operations a second.",
		shortName(e.parameter), m.valueLabel(e.parameter, e.a.parameters[e.parameter]), m.valueLabel(e.parameter, e.b.parameters[e.parameter]), with,
		formatFigure(e.ratio.Mean), interval, formatFigure(e.a.goodput().Mean), formatFigure(e.b.goodput().Mean))
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// observedEvent is an event of a trial with what came of it.
type observedEvent struct {
	trial int
	record.EventImpact
}

// lostService is how much of their service clients missed, in seconds of a whole outage: the time below
// the baseline times how far below it was.
func lostService(r record.Recovery) float64 {
	if r.BaselineOps <= 0 {
		return r.UnresponsiveS
	}
	return r.DipOps / r.BaselineOps
}

// recoveryHighlights name the event that hurt most among those whose end was seen, and the one
// among those that lasted longer than they were watched: of these only the least is known, so
// that they are not ranked among the others.
func (m *model) recoveryHighlights() (out []Highlight) {
	var seen, open []observedEvent
	for _, t := range m.dir.Summary.Trials {
		for _, h := range t.Events {
			if h.Recovery.Censored || h.Recovery.BaselineOps <= 0 {
				open = append(open, observedEvent{t.ID, h})
			} else {
				seen = append(seen, observedEvent{t.ID, h})
			}
		}
	}
	if w, ok := worstEvent(seen); ok {
		head := "After"
		if len(seen) > 1 {
			head = fmt.Sprintf("Of %s with a recovery that was seen, the one that hurt most: after", plural(len(seen), "event"))
		}
		out = append(out, Highlight{Kind: "recovery", Trial: w.trial, Text: w.describe(head)})
	}
	if w, ok := worstEvent(open); ok {
		head := "After"
		if len(open) > 1 {
			head = fmt.Sprintf("Of %s whose recovery was not seen to its end, the one that hurt most: after", plural(len(open), "event"))
		}
		out = append(out, Highlight{Kind: "recovery", Trial: w.trial, Text: w.describe(head)})
	}
	return out
}

func worstEvent(events []observedEvent) (w observedEvent, ok bool) {
	for i, e := range events {
		if i == 0 || compareRecovery(e.Recovery, w.Recovery) > 0 {
			w = e
		}
	}
	return w, len(events) > 0
}

func compareRecovery(a, b record.Recovery) int {
	return cmp.Or(cmp.Compare(lostService(a), lostService(b)), cmp.Compare(a.RecoverS, b.RecoverS), cmp.Compare(a.UnresponsiveS, b.UnresponsiveS), cmp.Compare(a.DipDepth, b.DipDepth))
}

func (w observedEvent) describe(head string) string {
	r := w.Recovery
	s := fmt.Sprintf("%s “%s” at %s s in trial %d ", head, w.Name, formatFigure(w.AtS), w.trial)
	switch {
	case r.BaselineOps <= 0:
		s += "nothing can be said about goodput, since there was none before it"
	case r.Censored:
		s += fmt.Sprintf("it took at least %s s, as long as it was watched, until clients were served as before", formatFigure(r.WatchedS))
	default:
		s += fmt.Sprintf("it took %s s until clients were served as before", formatFigure(r.RecoverS))
	}
	if r.BaselineOps > 0 {
		s += fmt.Sprintf("; they missed as much as in %s s of a whole outage, in the worst second %s of goodput", formatFigure(lostService(r)), formatPercent(r.DipDepth))
	}
	if r.UnresponsiveS > 0 {
		s += fmt.Sprintf("; %s s passed without any operation that ended ok", formatFigure(r.UnresponsiveS))
	}
	return s + "."
}
