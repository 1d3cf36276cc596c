package choose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/race"
	"skerry/internal/record/metric"
	"skerry/internal/run/runner"
)

func (a Answer) summarySentence() string {
	in := slices.DeleteFunc(slices.Clone(a.Candidates), func(v Verdict) bool { return v.Out != "" })
	if len(in) == 0 {
		return a.noneSentence()
	}
	first := in[0]
	text := fmt.Sprintf("Use %s: %s.", first.phrase(), first.figureText())
	if bad := len(a.Days) - 1; bad > 0 {
		text += " It met all needs on the quiet day and on " + runner.CountNoun(bad, "bad day")
		if first.Audited > 0 && first.LostWrites == 0 {
			text += ", and lost no acknowledged write in " + runner.CountNoun(first.Audited, "audited trial")
		}
		text += "."
	}
	if len(in) > 1 {
		text += fmt.Sprintf(" The runner-up is %s: %s.", in[1].phrase(), in[1].figureText())
		if first.Wins < 0.95 {
			text += fmt.Sprintf(" The order is uncertain: it would hold in %.0f of 100 repetitions.", 100*first.Wins)
		}
	}
	return text
}

// partSentences are on candidates that failed nothing, but could not be measured in full.
func (a Answer) partSentences() (text string) {
	for _, v := range a.Candidates {
		if v.Out == race.Partly {
			text += fmt.Sprintf(" %s had %s, but was %s.", v.phrase(), v.figureText(), v.Why)
		}
	}
	return text
}

// phrase names the candidate within a sentence: "redis (one copy)".
func (v Verdict) phrase() string {
	switch {
	case v.Database == "" || v.Own != "":
		return v.Label
	case len(v.Members) > 0:
		return fmt.Sprintf("%s (%s) on %s", v.Database, v.Choice.Name, runner.CountNoun(len(v.Members), "node"))
	}
	return fmt.Sprintf("%s (%s)", v.Database, v.Choice.Name)
}

func (a Answer) noneSentence() string {
	near := a.nearest()
	if near == nil {
		return "No candidate was measured completely, so it is not known whether one meets the needs."
	}
	text := "No candidate meets all needs."
	if a.partSentences() != "" {
		text = "No candidate was shown to meet all needs."
	}
	var reported []string
	alone := near.failedNeeds() == 1
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			key := n.Text + n.Day
			if n.N == 0 || slices.Contains(reported, key) {
				continue
			}
			reported = append(reported, key)
			if best, label, all := a.nearestFigure(n); all {
				text += fmt.Sprintf(" No candidate meets %s %s; the closest is %s with %s.", n.Text, onDay(n.Day), label, best.Value)
				alone = alone && label == near.phrase()
			}
		}
	}
	if alone {
		return text
	}
	return text + fmt.Sprintf(" The closest overall is %s: %s.", near.phrase(), near.Why)
}

func onDay(day string) string {
	if day == race.Quiet {
		return "on the quiet day"
	}
	return fmt.Sprintf("on the bad day %q", day)
}

// confidence describes how often each candidate would rank first in repetitions; "" if none meets the needs.
func (a Answer) confidence() string {
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
	metricName := first.Figures[0].Name
	basis := fmt.Sprintf(" The %s of %s is from %s", metricName, first.phrase(), runner.CountNoun(first.Figures[0].N, "quiet trial"))
	noise := fmt.Sprintf(" Repetitions differed by %.2g %% in %s, over all candidates.", 100*a.Noise, metricName)
	if len(in) == 1 {
		return fmt.Sprintf("%s is the only candidate that met all needs on all days.", first.phrase()) + basis + "." + noise
	}
	text := fmt.Sprintf("In 100 repetitions of these trials, %s would rank first %s", first.phrase(), timesInHundred(first.Wins))
	for _, v := range in[1:] {
		text += fmt.Sprintf(", %s %s", v.phrase(), timesInHundred(v.Wins))
		basis += fmt.Sprintf(", that of %s from %d", v.phrase(), v.Figures[0].N)
	}
	return text + "." + basis + "." + noise
}

func timesInHundred(share float64) string {
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

// nearestFigure returns the best result for a need on its day. all is true if every measured candidate failed it.
func (a Answer) nearestFigure(need Need) (best Need, label string, all bool) {
	best.margin = math.Inf(-1)
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			if n.Text != need.Text || n.Day != need.Day || n.N == 0 {
				continue
			}
			if n.State != NotMet {
				return n, v.phrase(), false
			}
			if label == "" || n.margin > best.margin {
				best, label = n, v.phrase()
			}
		}
	}
	return best, label, true
}

// figureForms are the formats of figures whose metric is clear without its name.
var figureForms = map[string]string{
	"cost.memory": "%s of memory", "cost.traffic": "%s of traffic per request", "cost.cpu": "%s", "goodput": "%s", "throughput": "%s",
}

func (v Verdict) figureText() string {
	var parts []string
	for _, f := range v.Figures {
		form, ok := figureForms[f.Name]
		if !ok {
			form = f.Name + " %s"
		}
		parts = append(parts, fmt.Sprintf(form, f))
	}
	return strings.Join(parts, ", ")
}

// nearest returns the candidate that fails the fewest needs; of several the best ranked.
func (a Answer) nearest() *Verdict {
	best, fewest := -1, math.MaxInt
	for i, v := range a.Candidates {
		if n := v.failedNeeds(); len(v.Figures) > 0 && v.Out == race.Failed && n < fewest {
			best, fewest = i, n
		}
	}
	if best < 0 {
		return nil
	}
	return &a.Candidates[best]
}

// Err returns nil if a candidate meets all needs, ErrNone if none does, and ErrNothing if that is unknown.
func (a Answer) Err() error {
	switch {
	case a.winner() != nil:
		return nil
	case a.nearest() == nil:
		return ErrNothing
	}
	return ErrNone
}

func (a Answer) winner() *Verdict {
	if len(a.Candidates) == 0 || a.Candidates[0].Out != "" || len(a.Candidates[0].Figures) == 0 {
		return nil
	}
	return &a.Candidates[0]
}

func (l Load) describe() string {
	text := fmt.Sprintf("workload %s on %d records", l.Workload, l.Records)
	if l.Target > 0 {
		return text + fmt.Sprintf(", %.4g requests per second", l.Target)
	}
	return text + fmt.Sprintf(", as many requests as %s can send", runner.CountNoun(l.Threads, "connection"))
}

// OptionNames returns the names of a candidate's options, sorted.
func OptionNames(c Candidate) []string { return slices.Sorted(maps.Keys(c.Options)) }

func (v Verdict) failedNeeds() (n int) {
	for _, need := range v.Needs {
		if need.State == NotMet {
			n++
		}
	}
	return n
}

// changes lists what would change the answer: faster candidates that fail a need, the winner's tightest need,
// candidates that might rank first, and faster ones that were not tried on all days.
func (a Answer) changes() (changes []string) {
	winner := slices.IndexFunc(a.Candidates, func(v Verdict) bool { return v.Out == "" })
	if winner < 0 {
		return a.relaxations()
	}
	first := a.Candidates[winner]
	for _, v := range a.Candidates {
		if v.Out == race.Failed && v.ranksBefore(first) {
			changes = append(changes, fmt.Sprintf("%s would rank above %s with %s if it met all needs, but %s.",
				v.phrase(), first.phrase(), v.figureText(), v.Why))
		}
	}
	tight := Need{margin: math.Inf(1)}
	for _, n := range first.Needs {
		if n.N > 0 && n.margin < tight.margin {
			tight = n
		}
	}
	if !math.IsInf(tight.margin, 1) {
		changes = append(changes, fmt.Sprintf("The tightest need of %s is %q: it measured %s %s.",
			first.phrase(), tight.Text, tight.Value, onDay(tight.Day)))
	}
	var untried []string
	for _, v := range a.Candidates {
		switch {
		case v.Out == "" && v.ID != first.ID && v.Wins > 0.05:
			changes = append(changes, fmt.Sprintf("More repetitions could put %s first: it would win %.0f of 100 times.", v.phrase(), 100*v.Wins))
		case v.Out == race.Waiting && v.ranksBefore(first):
			untried = append(untried, v.phrase())
		}
	}
	if len(untried) > 0 {
		changes = append(changes, fmt.Sprintf("Faster on the quiet day, but not tried on all bad days: %s. Raise the budget to try them.",
			strings.Join(untried, "; ")))
	}
	return changes
}

// relaxations lists how the failed needs of the nearest candidate would have to be relaxed for it to pass.
func (a Answer) relaxations() (changes []string) {
	near := a.nearest()
	if near == nil {
		return nil
	}
	untried := 0
	for _, n := range near.Needs {
		switch {
		case n.State == NotMet:
			changes = append(changes, fmt.Sprintf("%s would pass %s if %s were enough %s.", near.phrase(), n.Text, n.Value, onDay(n.Day)))
		case n.N == 0:
			untried++
		}
	}
	if untried > 0 {
		changes = append(changes, fmt.Sprintf(
			"%s failed early and was not tried on all days, so its other needs are unknown. Relax the need and continue with --needs.",
			near.phrase()))
	}
	return changes
}

// Compare compares the answer of an exhaustive choice with that of a race.
func (a Answer) Compare(raced Answer) string {
	best, won := a.winner(), raced.winner()
	if best == nil || won == nil {
		return fmt.Sprintf("The race ended with: %s", raced.Sentence)
	}
	text := fmt.Sprintf("The race took %d trials and %s. All candidates on all days, %s, took %d trials and %s. ",
		raced.Trials, formatSeconds(raced.SpentS), a.repetitionText(), a.Trials, formatSeconds(a.SpentS))
	i := slices.IndexFunc(a.Candidates, func(v Verdict) bool { return v.ID == won.ID })
	switch {
	case won.ID == best.ID:
		return text + fmt.Sprintf("Both choose %s.", best.phrase())
	case i < 0 || a.Candidates[i].Out != "":
		return text + fmt.Sprintf("The race chose %s, which fails the needs when everything is measured; %s meets them.",
			won.phrase(), best.phrase())
	}
	x, y := a.Candidates[i].Figures[0], best.Figures[0]
	within := "outside"
	if x.Low <= y.High && y.Low <= x.High {
		within = "within"
	}
	return text + fmt.Sprintf("The race chose %s, all trials choose %s: %s %s against %s, %s the intervals.",
		won.phrase(), best.phrase(), x.Name, x, y, within)
}

func (a Answer) repetitionText() string {
	if a.Repetitions == 1 {
		return "once each"
	}
	return fmt.Sprintf("%d times each", a.Repetitions)
}

// ranksBefore reports whether the first figure of v is better than that of o. It is false if either has none.
func (v Verdict) ranksBefore(o Verdict) bool {
	if len(v.Figures) == 0 || len(o.Figures) == 0 || v.Figures[0].Name != o.Figures[0].Name {
		return false
	}
	if u := v.Figures[0].Unit; u == metric.Rate || u == metric.Share {
		return v.Figures[0].Mean > o.Figures[0].Mean
	}
	return v.Figures[0].Mean < o.Figures[0].Mean
}

// formatSeconds rounds a duration to what a reader needs: "45 s", "39 min", "2.5 h".
func formatSeconds(seconds float64) string {
	number, unit := splitSeconds(seconds, seconds)
	return number + " " + unit
}

// formatSpent formats the spent part of a budget: "39 of 40 min".
func formatSpent(spent, budget float64) string {
	of, unit := splitSeconds(budget, budget)
	number, _ := splitSeconds(spent, budget)
	return number + " of " + of + " " + unit
}

// splitSeconds formats seconds in the unit that suits scale.
func splitSeconds(seconds, scale float64) (number, unit string) {
	switch {
	case scale >= 2*3600:
		return fmt.Sprintf("%.1f", seconds/3600), "h"
	case scale >= 120:
		return fmt.Sprintf("%.0f", seconds/60), "min"
	}
	return fmt.Sprintf("%.0f", seconds), "s"
}
