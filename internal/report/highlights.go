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

// Highlight is one of the few most important findings.
type Highlight struct {
	// Kind is assertion, audit, failed, trust, effect, recovery, latency or errors.
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Trial is the ID of the trial concerned, 0 for all.
	Trial int `json:"trial,omitempty"`
	// Bad marks a warning about the validity of the other findings.
	Bad bool `json:"bad,omitempty"`
}

// highlights returns the warnings, the largest effect between cells, and the worst recoveries. Runs
// without events show errors or latency instead. Runs without warnings end with the accuracy of the
// links.
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

func (m *model) warnings() []warnings.Warning {
	return warnings.Collect(m.dir.Summary.Trials, m.tally().planned)
}

func latencyUnlessErrors(errors, latency []string) []string {
	if len(latency) > 0 && (len(errors) == 0 || strings.HasPrefix(errors[0], "All ")) {
		return latency
	}
	return errors
}

// effect is the ratio b/a of the goodput of two cells that differ in one parameter.
type effect struct {
	parameter string
	a, b      *cell
	ratio     stats.Estimate
}

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
	if e.ratio.Mean > 1 { // report a loss: from the better cell to the worse
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
	interval := "one repetition each, no interval"
	if e.ratio.HasInterval() {
		interval = fmt.Sprintf("95 %% CI %s to %s", formatFigure(max(0, e.ratio.Mean-e.ratio.HalfWidth)),
			formatFigure(e.ratio.Mean+e.ratio.HalfWidth))
		if !e.isSignificant() {
			interval += ", no significant difference"
		}
	}
	return fmt.Sprintf("Largest effect: changing %s from %s to %s%s multiplies goodput by %s (%s): %s to %s ops/s.",
		shortName(e.parameter), m.valueLabel(e.parameter, e.a.parameters[e.parameter]),
		m.valueLabel(e.parameter, e.b.parameters[e.parameter]), with,
		formatFigure(e.ratio.Mean), interval, formatFigure(e.a.goodput().Mean), formatFigure(e.b.goodput().Mean))
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

type observedEvent struct {
	trial int
	record.EventImpact
}

// lostService returns the lost service in seconds of a complete outage: the duration below the
// baseline times its relative depth.
func lostService(r record.Recovery) float64 {
	if r.BaselineOps <= 0 {
		return r.UnresponsiveS
	}
	return r.DipOps / r.BaselineOps
}

// recoveryHighlights returns the worst observed recovery and the worst censored one. They are
// ranked separately because only a lower bound is known of a censored recovery.
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
			head = fmt.Sprintf("Worst of %s with an observed recovery: after", Plural(len(seen), "event"))
		}
		out = append(out, Highlight{Kind: "recovery", Trial: w.trial, Text: w.describe(head)})
	}
	if w, ok := worstEvent(open); ok {
		head := "After"
		if len(open) > 1 {
			head = fmt.Sprintf("Worst of %s whose recovery was not observed to its end: after", Plural(len(open), "event"))
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
	return cmp.Or(cmp.Compare(lostService(a), lostService(b)), cmp.Compare(a.RecoverS, b.RecoverS),
		cmp.Compare(a.UnresponsiveS, b.UnresponsiveS), cmp.Compare(a.DipDepth, b.DipDepth))
}

func (w observedEvent) describe(head string) string {
	r := w.Recovery
	s := fmt.Sprintf("%s “%s” at %s s in trial %d, ", head, w.Name, formatFigure(w.AtS), w.trial)
	switch {
	case r.BaselineOps <= 0:
		s += "the recovery is unknown, because there was no goodput before the event"
	case r.Censored:
		s += fmt.Sprintf("service did not recover within the %s s of observation", formatFigure(r.WatchedS))
	default:
		s += fmt.Sprintf("service recovered in %s s", formatFigure(r.RecoverS))
	}
	if r.BaselineOps > 0 {
		s += fmt.Sprintf("; the loss equals %s s of complete outage, the worst second lost %s of goodput", formatFigure(lostService(r)),
			formatPercent(r.DipDepth))
	}
	if r.UnresponsiveS > 0 {
		s += fmt.Sprintf("; no operation succeeded for %s s", formatFigure(r.UnresponsiveS))
	}
	return s + "."
}
