package choose

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"skerry/internal/evidence/race"
	"skerry/internal/record/metric"
)

// fails is how many needs a candidate fails, each on each of its days.
func (v Verdict) fails() (n int) {
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
		return a.relaxed()
	}
	first := a.Candidates[winner]
	for _, v := range a.Candidates {
		if v.Out == race.Failed && v.before(first) {
			changes = append(changes, fmt.Sprintf("%s would come before %s with %s, if it met all needs: %s.", v.Label, first.Label, v.figures(), v.Why))
		}
	}
	tight := Need{margin: math.Inf(1)}
	for _, n := range first.Needs {
		if n.N > 0 && n.margin < tight.margin {
			tight = n
		}
	}
	if !math.IsInf(tight.margin, 1) {
		changes = append(changes, fmt.Sprintf("Of its needs %s meets %q by the least: it has %s %s.", first.Label, tight.Text, tight.Value, on(tight.Day)))
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

// relaxed says, where none meets the needs, which of them would have to ask for less for the nearest candidate to stay.
func (a Answer) relaxed() (changes []string) {
	near := a.nearest()
	if near == nil {
		return nil
	}
	untried := 0
	for _, n := range near.Needs {
		switch {
		case n.State == NotMet:
			changes = append(changes, fmt.Sprintf("%s would not fail %s if %s were enough %s.", near.Label, n.Text, n.Value, on(n.Day)))
		case n.N == 0:
			untried++
		}
	}
	if untried > 0 {
		changes = append(changes, fmt.Sprintf("Since it failed before, %s was not tried on all days: whether it meets the other needs then is not known. Relax the need and go on with --needs.", near.Label))
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
	text := fmt.Sprintf("The race took %d trials and %s. All candidates on all days, %s, took %d and %s. ", raced.Trials, spelled(raced.SpentS), a.often(), a.Trials, spelled(a.SpentS))
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
	return text + fmt.Sprintf("The race ended with %s, all trials with %s: %s %s against %s, %s the intervals.", won.Label, best.Label, x.Name, x, y, within)
}

// often is how many times everything was measured.
func (a Answer) often() string {
	if a.Repetitions == 1 {
		return "once each"
	}
	return fmt.Sprintf("%d times each", a.Repetitions)
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

func spelled(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
