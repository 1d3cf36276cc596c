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

// summarySentence answers first: its first sentence alone is an answer, too.
func (a Answer) summarySentence() string {
	in := slices.DeleteFunc(slices.Clone(a.Candidates), func(v Verdict) bool { return v.Out != "" })
	if len(in) == 0 {
		return a.noneSentence()
	}
	first := in[0]
	text := fmt.Sprintf("%s: %s.", first.Label, first.figureText())
	if bad := len(a.Days) - 1; bad > 0 {
		text += fmt.Sprintf(" All needs were met on a quiet and %s", countNoun(bad, "bad day", "bad days"))
		if first.Audited > 0 && first.LostWrites == 0 {
			text += fmt.Sprintf(", and nothing was lost in %s", countNoun(first.Audited, "trial with a bad day", "trials with bad days"))
		}
		text += "."
	}
	if len(in) > 1 {
		text += fmt.Sprintf(" Second: %s, %s.", in[1].Label, in[1].figureText())
		if first.Wins < 0.95 {
			text += fmt.Sprintf(" The order is not sure: %.0f in 100 repetitions would end so.", 100*first.Wins)
		}
	}
	return text
}

func countNoun(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// noneSentence says which needs nobody meets, and who comes nearest.
func (a Answer) noneSentence() string {
	near := a.nearest()
	if near == nil {
		return "No candidate could be measured to the end: whether one meets the needs is not known."
	}
	text := "None meets all needs."
	var said []string
	alone := near.failedNeeds() == 1
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			key := n.Text + n.Day
			if n.N == 0 || slices.Contains(said, key) {
				continue
			}
			said = append(said, key)
			if best, who, all := a.nearestFigure(n); all {
				text += fmt.Sprintf(" None meets %s %s: the nearest is %s with %s.", n.Text, onDay(n.Day), who, best.Value)
				alone = alone && who == near.Label
			}
		}
	}
	if alone {
		return text
	}
	return text + fmt.Sprintf(" Closest to all needs is %s: %s.", near.Label, near.Why)
}

// onDay is a day as a sentence has it.
func onDay(day string) string {
	if day == race.Quiet {
		return "on a quiet day"
	}
	return fmt.Sprintf("on the day %q", day)
}

// confidence says how often others would come first, were the trials repeated; "" where none meets the needs.
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
	rests := fmt.Sprintf("%s of %s rests on %s", first.Figures[0].Name, first.Label, countNoun(first.Figures[0].N, "quiet day", "quiet days"))
	noise := fmt.Sprintf(" Between repetitions %s differed by %.2g %%, over all candidates.", first.Figures[0].Name, 100*a.Noise)
	if len(in) == 1 {
		return fmt.Sprintf(
			"%s is the only candidate that met all needs on all days, so that there is no order to be unsure of. The %s.",
			first.Label, rests,
		) + noise
	}
	text := fmt.Sprintf("If these trials were repeated 100 times, %s would come first %s", first.Label, timesInHundred(first.Wins))
	for _, v := range in[1:] {
		text += fmt.Sprintf(", %s %s", v.Label, timesInHundred(v.Wins))
		rests += fmt.Sprintf(", that of %s on %d", v.Label, v.Figures[0].N)
	}
	return text + ". The " + rests + "." + noise
}

// timesInHundred is a share in words of 100.
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

// nearestFigure is whose figure for a need on its day is the best, and whether all that were measured then failed it.
func (a Answer) nearestFigure(need Need) (best Need, who string, all bool) {
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

// figureForms are figures that have no name in a sentence but their meaning.
var figureForms = map[string]string{
	"cost.memory": "%s of memory", "cost.traffic": "%s between nodes for a request", "cost.cpu": "%s",
	"goodput": "%s", "throughput": "%s",
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

// nearest is the candidate that fails the fewest needs, the best of those.
func (a Answer) nearest() *Verdict {
	best, fails := -1, math.MaxInt
	for i, v := range a.Candidates {
		if n := v.failedNeeds(); len(v.Figures) > 0 && v.Out == race.Failed && n < fails {
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

// describe say what a load is.
func (l Load) describe() string {
	text := fmt.Sprintf("workload %s on %d records", l.Workload, l.Records)
	if l.Target > 0 {
		return text + fmt.Sprintf(", %.4g requests a second", l.Target)
	}
	return text + fmt.Sprintf(", as many requests as %d connections can do", l.Threads)
}

// OptionNames are the options of a candidate, in order.
func OptionNames(c Candidate) []string { return slices.Sorted(maps.Keys(c.Options)) }

// failedNeeds is how many needs a candidate fails, each on each of its days.
func (v Verdict) failedNeeds() (n int) {
	for _, need := range v.Needs {
		if need.State == NotMet {
			n++
		}
	}
	return n
}

// changes say what would change the answer: who was faster and failed a need, which of the winner's needs
// is met by the least, who might come first, and who was not tried to the end.
func (a Answer) changes() (changes []string) {
	winner := slices.IndexFunc(a.Candidates, func(v Verdict) bool { return v.Out == "" })
	if winner < 0 {
		return a.relaxations()
	}
	first := a.Candidates[winner]
	for _, v := range a.Candidates {
		if v.Out == race.Failed && v.ranksBefore(first) {
			changes = append(
				changes,
				fmt.Sprintf("%s would come before %s with %s, if it met all needs: %s.", v.Label, first.Label, v.figureText(), v.Why),
			)
		}
	}
	tight := Need{margin: math.Inf(1)}
	for _, n := range first.Needs {
		if n.N > 0 && n.margin < tight.margin {
			tight = n
		}
	}
	if !math.IsInf(tight.margin, 1) {
		changes = append(
			changes,
			fmt.Sprintf("Of its needs %s meets %q by the least: it has %s %s.", first.Label, tight.Text, tight.Value, onDay(tight.Day)),
		)
	}
	var untried []string
	for _, v := range a.Candidates {
		switch {
		case v.Out == "" && v.ID != first.ID && v.Wins > 0.05:
			changes = append(changes, fmt.Sprintf("More repetitions could put %s first: it would win %.0f in 100 times.", v.Label, 100*v.Wins))
		case v.Out == race.Waiting && v.ranksBefore(first):
			untried = append(untried, v.Label)
		}
	}
	if len(untried) > 0 {
		changes = append(
			changes,
			fmt.Sprintf("Faster on the quiet day, and not tried on all bad ones: %s. A larger budget would tell.", strings.Join(untried, "; ")),
		)
	}
	return changes
}

// relaxations says, where none meets the needs, which of them would have to ask for less for the nearest candidate to stay.
func (a Answer) relaxations() (changes []string) {
	near := a.nearest()
	if near == nil {
		return nil
	}
	untried := 0
	for _, n := range near.Needs {
		switch {
		case n.State == NotMet:
			changes = append(changes, fmt.Sprintf("%s would not fail %s if %s were enough %s.", near.Label, n.Text, n.Value, onDay(n.Day)))
		case n.N == 0:
			untried++
		}
	}
	if untried > 0 {
		changes = append(
			changes,
			fmt.Sprintf(
				"Since it failed before, %s was not tried on all days: whether it meets the other needs then is not known. Relax the need and go on with --needs.",
				near.Label,
			),
		)
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
	text := fmt.Sprintf(
		"The race took %d trials and %s. All candidates on all days, %s, took %d and %s. ", raced.Trials,
		formatSeconds(raced.SpentS), a.repetitionText(), a.Trials, formatSeconds(a.SpentS),
	)
	i := slices.IndexFunc(a.Candidates, func(v Verdict) bool { return v.ID == won.ID })
	switch {
	case won.ID == best.ID:
		return text + fmt.Sprintf("Both end with %s.", best.Label)
	case i < 0 || a.Candidates[i].Out != "":
		return text + fmt.Sprintf("The race ended with %s, which does not meet the needs when all is measured; %s does.", won.Label, best.Label)
	}
	x, y := a.Candidates[i].Figures[0], best.Figures[0]
	within := "outside"
	if x.Low <= y.High && y.Low <= x.High {
		within = "within"
	}
	return text + fmt.Sprintf(
		"The race ended with %s, all trials with %s: %s %s against %s, %s the intervals.", won.Label, best.Label,
		x.Name, x, y, within,
	)
}

// repetitionText is how many times everything was measured.
func (a Answer) repetitionText() string {
	if a.Repetitions == 1 {
		return "once each"
	}
	return fmt.Sprintf("%d times each", a.Repetitions)
}

// ranksBefore tells whether a candidate's first figure is the better one; one that was not measured yet has none.
func (v Verdict) ranksBefore(o Verdict) bool {
	if len(v.Figures) == 0 || len(o.Figures) == 0 || v.Figures[0].Name != o.Figures[0].Name {
		return false
	}
	if u := v.Figures[0].Unit; u == metric.Rate || u == metric.Share {
		return v.Figures[0].Mean > o.Figures[0].Mean
	}
	return v.Figures[0].Mean < o.Figures[0].Mean
}

func formatSeconds(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
