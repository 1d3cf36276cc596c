package choose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"skerry/internal/evidence/race"
	"skerry/internal/record/metric"
)

// sentence answers first.
func (a Answer) sentence() string {
	in := slices.DeleteFunc(slices.Clone(a.Candidates), func(v Verdict) bool { return v.Out != "" })
	if len(in) == 0 {
		return a.none()
	}
	first := in[0]
	text := fmt.Sprintf("%s: %s", first.Label, first.figures())
	if first.Audited > 0 && first.LostWrites == 0 {
		text += fmt.Sprintf(", nothing lost in %s", count(first.Audited, "trial with a bad day", "trials with bad days"))
	}
	if bad := len(a.Days) - 1; bad > 0 {
		text += fmt.Sprintf(", all needs met on a quiet and %s", count(bad, "bad day", "bad days"))
	}
	if len(in) > 1 {
		text += fmt.Sprintf("; second: %s, %s", in[1].Label, in[1].figures())
		if first.Wins < 0.95 {
			text += fmt.Sprintf(" (the order is not sure: %.0f in 100 repetitions would end so)", 100*first.Wins)
		}
	}
	return text + "."
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// none says which needs nobody meets, and who comes nearest.
func (a Answer) none() string {
	near := a.nearest()
	if near == nil {
		return "No candidate could be measured to the end: whether one meets the needs is not known."
	}
	text := "None meets all needs."
	var said []string
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			key := n.Text + n.Day
			if n.N == 0 || slices.Contains(said, key) {
				continue
			}
			said = append(said, key)
			if best, who, all := a.nearestTo(n); all {
				text += fmt.Sprintf(" On the day %q none meets %s: the nearest is %s with %s.", n.Day, n.Text, who, best.Value)
			}
		}
	}
	return text + fmt.Sprintf(" Closest to all needs is %s: %s.", near.Label, near.Why)
}

// nearestTo is whose figure for a need on its day is the best, and whether all that were measured then failed it.
func (a Answer) nearestTo(need Need) (best Need, who string, all bool) {
	best.margin = math.Inf(-1)
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			if n.Text != need.Text || n.Day != need.Day || n.N == 0 {
				continue
			}
			if n.State != NotMet {
				return n, v.Label, false
			}
			if who == "" || n.margin > best.margin {
				best, who = n, v.Label
			}
		}
	}
	return best, who, true
}

// spoken are figures that have no name in a sentence but their meaning.
var spoken = map[string]string{"cost.memory": "%s of memory", "cost.traffic": "%s between nodes for a request", "cost.cpu": "%s", "goodput": "%s", "throughput": "%s"}

func (v Verdict) figures() string {
	var parts []string
	for _, f := range v.Figures {
		form, ok := spoken[f.Name]
		if !ok {
			form = f.Name + " %s"
		}
		parts = append(parts, fmt.Sprintf(form, f))
	}
	return strings.Join(parts, ", ")
}

// nearest is the candidate that fails the fewest needs, the best of those.
func (a Answer) nearest() *Verdict {
	best, fails := -1, math.MaxInt
	for i, v := range a.Candidates {
		n := 0
		for _, need := range v.Needs {
			if need.State == NotMet {
				n++
			}
		}
		if len(v.Figures) > 0 && v.Out == race.Failed && n < fails {
			best, fails = i, n
		}
	}
	if best < 0 {
		return nil
	}
	return &a.Candidates[best]
}

// changes say what would change the answer: who was faster and failed a need, which of the winner's needs
// is met by the least, who might come first, and who was not tried to the end.
func (a Answer) changes() (changes []string) {
	winner := slices.IndexFunc(a.Candidates, func(v Verdict) bool { return v.Out == "" })
	for _, v := range a.Candidates {
		if v.Out != race.Failed || len(v.Figures) == 0 || winner >= 0 && !v.before(a.Candidates[winner]) {
			continue
		}
		changes = append(changes, fmt.Sprintf("Without the need that it fails, %s would come first with %s: %s.", v.Label, v.figures(), v.Why))
	}
	if winner < 0 {
		return changes
	}
	first := a.Candidates[winner]
	tight := Need{margin: math.Inf(1)}
	for _, n := range first.Needs {
		if n.N > 0 && n.margin < tight.margin {
			tight = n
		}
	}
	if !math.IsInf(tight.margin, 1) {
		changes = append(changes, fmt.Sprintf("Of its needs %s meets %q by the least: it has %s on the day %q.", first.Label, tight.Text, tight.Value, tight.Day))
	}
	var untried []string
	for _, v := range a.Candidates {
		switch {
		case v.Out == "" && v.ID != first.ID && v.Wins > 0.05:
			changes = append(changes, fmt.Sprintf("More repetitions could put %s first: it would win %.0f in 100 times.", v.Label, 100*v.Wins))
		case v.Out == race.Waiting && v.before(first):
			untried = append(untried, v.Label)
		}
	}
	if len(untried) > 0 {
		changes = append(changes, fmt.Sprintf("Faster on the quiet day, and not tried on all bad ones: %s. A larger budget would tell.", strings.Join(untried, "; ")))
	}
	return changes
}

// Compare says how the race's answer stands to that of everything measured: the same winner, or one that
// is within the winner's interval.
func (a Answer) Compare(raced Answer) string {
	best, won := a.winner(), raced.winner()
	if best == nil || won == nil {
		return fmt.Sprintf("The race had ended with: %s", raced.Sentence)
	}
	text := fmt.Sprintf("The race took %d trials and %s, everything %d and %s. ", raced.Trials, spelled(raced.SpentS), a.Trials, spelled(a.SpentS))
	i := slices.IndexFunc(a.Candidates, func(v Verdict) bool { return v.ID == won.ID })
	switch {
	case won.ID == best.ID:
		return text + fmt.Sprintf("Both end with %s.", best.Label)
	case i < 0 || a.Candidates[i].Out != "":
		return text + fmt.Sprintf("The race ended with %s, which does not meet the needs when all is measured; %s does.", won.Label, best.Label)
	}
	x, y := a.Candidates[i].Figures[0], best.Figures[0]
	within := "outside"
	if math.Abs(x.Mean-y.Mean) <= x.Half+y.Half {
		within = "within"
	}
	return text + fmt.Sprintf("The race ended with %s, all trials with %s: %s %s against %s, %s the intervals.", won.Label, best.Label, x.Name, x, y, within)
}

// Err is nil where a candidate meets all needs, and otherwise ErrNone, or ErrNothing where of none is known
// whether it does.
func (a Answer) Err() error {
	switch {
	case a.winner() != nil:
		return nil
	case a.nearest() == nil:
		return ErrNothing
	}
	return ErrNone
}

// winner is the best that meets the needs, nil where none does.
func (a Answer) winner() *Verdict {
	if len(a.Candidates) == 0 || a.Candidates[0].Out != "" || len(a.Candidates[0].Figures) == 0 {
		return nil
	}
	return &a.Candidates[0]
}

func spelled(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// words say what a load is.
func (l Load) words() string {
	text := fmt.Sprintf("workload %s on %d records", l.Workload, l.Records)
	if l.Target > 0 {
		return text + fmt.Sprintf(", %.4g requests a second", l.Target)
	}
	return text + fmt.Sprintf(", as many requests as %d connections can do", l.Threads)
}

// before tells whether a candidate's first figure is the better one; one that was not measured yet has none.
func (v Verdict) before(o Verdict) bool {
	if len(v.Figures) == 0 || len(o.Figures) == 0 || v.Figures[0].Name != o.Figures[0].Name {
		return false
	}
	if u := v.Figures[0].Unit; u == metric.Rate || u == metric.Share {
		return v.Figures[0].Mean > o.Figures[0].Mean
	}
	return v.Figures[0].Mean < o.Figures[0].Mean
}

// OptionNames are the options of a candidate, in order.
func OptionNames(c Candidate) []string { return slices.Sorted(maps.Keys(c.Options)) }
