package report

import (
	"cmp"
	"fmt"

	"skerry/internal/record"
)

// watched is an event of a trial with what came of it.
type watched struct {
	trial int
	record.Happening
}

// hurt is how much of their service clients missed, in seconds of a whole outage: the time below
// the baseline times how far below it was.
func hurt(r record.Recovery) float64 {
	if r.BaselineOps <= 0 {
		return r.UnresponsiveS
	}
	return r.DipOps / r.BaselineOps
}

// recoveryHighlights name the event that hurt most among those whose end was seen, and the one
// among those that lasted longer than they were watched: of these only the least is known, so
// that they are not ranked among the others.
func (m *model) recoveryHighlights() (out []Highlight) {
	var seen, open []watched
	for _, t := range m.dir.Summary.Trials {
		for _, h := range t.Events {
			if h.Recovery.Censored || h.Recovery.BaselineOps <= 0 {
				open = append(open, watched{t.ID, h})
			} else {
				seen = append(seen, watched{t.ID, h})
			}
		}
	}
	if w, ok := worst(seen); ok {
		head := "After"
		if len(seen) > 1 {
			head = fmt.Sprintf("Of %s with a recovery that was seen, the one that hurt most: after", plural(len(seen), "event"))
		}
		out = append(out, Highlight{Kind: "recovery", Trial: w.trial, Text: w.sentence(head)})
	}
	if w, ok := worst(open); ok {
		head := "After"
		if len(open) > 1 {
			head = fmt.Sprintf("Of %s whose recovery was not seen to its end, the one that hurt most: after", plural(len(open), "event"))
		}
		out = append(out, Highlight{Kind: "recovery", Trial: w.trial, Text: w.sentence(head)})
	}
	return out
}

func worst(events []watched) (w watched, ok bool) {
	for i, e := range events {
		if i == 0 || compareRecovery(e.Recovery, w.Recovery) > 0 {
			w = e
		}
	}
	return w, len(events) > 0
}

func compareRecovery(a, b record.Recovery) int {
	return cmp.Or(cmp.Compare(hurt(a), hurt(b)), cmp.Compare(a.RecoverS, b.RecoverS), cmp.Compare(a.UnresponsiveS, b.UnresponsiveS), cmp.Compare(a.DipDepth, b.DipDepth))
}

func (w watched) sentence(head string) string {
	r := w.Recovery
	s := fmt.Sprintf("%s “%s” at %s s in trial %d ", head, w.Name, figure(w.AtS), w.trial)
	switch {
	case r.BaselineOps <= 0:
		s += "nothing can be said about goodput, since there was none before it"
	case r.Censored:
		s += fmt.Sprintf("it took at least %s s, as long as it was watched, until clients were served as before", figure(r.WatchedS))
	default:
		s += fmt.Sprintf("it took %s s until clients were served as before", figure(r.RecoverS))
	}
	if r.BaselineOps > 0 {
		s += fmt.Sprintf("; they missed as much as in %s s of a whole outage, in the worst second %s of goodput", figure(hurt(r)), percent(r.DipDepth))
	}
	if r.UnresponsiveS > 0 {
		s += fmt.Sprintf("; %s s passed without any operation that ended ok", figure(r.UnresponsiveS))
	}
	return s + "."
}
