package choose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/race"
)

// sentence answers first: its first sentence alone is an answer, too.
func (a Answer) sentence() string {
	in := slices.DeleteFunc(slices.Clone(a.Candidates), func(v Verdict) bool { return v.Out != "" })
	if len(in) == 0 {
		return a.none()
	}
	first := in[0]
	text := fmt.Sprintf("%s: %s.", first.Label, first.figures())
	if bad := len(a.Days) - 1; bad > 0 {
		text += fmt.Sprintf(" All needs were met on a quiet and %s", count(bad, "bad day", "bad days"))
		if first.Audited > 0 && first.LostWrites == 0 {
			text += fmt.Sprintf(", and nothing was lost in %s", count(first.Audited, "trial with a bad day", "trials with bad days"))
		}
		text += "."
	}
	if len(in) > 1 {
		text += fmt.Sprintf(" Second: %s, %s.", in[1].Label, in[1].figures())
		if first.Wins < 0.95 {
			text += fmt.Sprintf(" The order is not sure: %.0f in 100 repetitions would end so.", 100*first.Wins)
		}
	}
	return text
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
	alone := near.fails() == 1
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			key := n.Text + n.Day
			if n.N == 0 || slices.Contains(said, key) {
				continue
			}
			said = append(said, key)
			if best, who, all := a.nearestTo(n); all {
				text += fmt.Sprintf(" None meets %s %s: the nearest is %s with %s.", n.Text, on(n.Day), who, best.Value)
				alone = alone && who == near.Label
			}
		}
	}
	if alone {
		return text
	}
	return text + fmt.Sprintf(" Closest to all needs is %s: %s.", near.Label, near.Why)
}

// on is a day as a sentence has it.
func on(day string) string {
	if day == race.Quiet {
		return "on a quiet day"
	}
	return fmt.Sprintf("on the day %q", day)
}

// sure says how often others would come first, were the trials repeated; "" where none meets the needs.
func (a Answer) sure() string {
	var in []Verdict
	for _, v := range a.Candidates {
		if v.Out == "" && len(v.Figures) > 0 {
			in = append(in, v)
		}
	}
	if len(in) == 0 {
		return ""
	}
	first := in[0]
	rests := fmt.Sprintf("%s of %s rests on %s", first.Figures[0].Name, first.Label, count(first.Figures[0].N, "quiet day", "quiet days"))
	noise := fmt.Sprintf(" Between repetitions %s differed by %.2g %%, over all candidates.", first.Figures[0].Name, 100*a.Noise)
	if len(in) == 1 {
		return fmt.Sprintf("%s is the only candidate that met all needs on all days, so that there is no order to be unsure of. The %s.", first.Label, rests) + noise
	}
	text := fmt.Sprintf("If these trials were repeated 100 times, %s would come first %s", first.Label, times(first.Wins))
	for _, v := range in[1:] {
		text += fmt.Sprintf(", %s %s", v.Label, times(v.Wins))
		rests += fmt.Sprintf(", that of %s on %d", v.Label, v.Figures[0].N)
	}
	return text + ". The " + rests + "." + noise
}

// times is a share in words of 100.
func times(share float64) string {
	switch n := math.Round(100 * share); {
	case n >= 100 && share < 1:
		return "more than 99 times"
	case n == 0:
		return "less than once"
	case n == 1:
		return "once"
	default:
		return fmt.Sprintf("%.0f times", n)
	}
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
		if n := v.fails(); len(v.Figures) > 0 && v.Out == race.Failed && n < fails {
			best, fails = i, n
		}
	}
	if best < 0 {
		return nil
	}
	return &a.Candidates[best]
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

// words say what a load is.
func (l Load) words() string {
	text := fmt.Sprintf("workload %s on %d records", l.Workload, l.Records)
	if l.Target > 0 {
		return text + fmt.Sprintf(", %.4g requests a second", l.Target)
	}
	return text + fmt.Sprintf(", as many requests as %d connections can do", l.Threads)
}

// OptionNames are the options of a candidate, in order.
func OptionNames(c Candidate) []string { return slices.Sorted(maps.Keys(c.Options)) }
