package choose

import (
	"fmt"
	"math"
	"path/filepath"

	"skerry/internal/evidence/race"
	"skerry/internal/record"
)

// Verdict is what is known of a candidate.
type Verdict struct {
	Candidate
	ID    string `json:"id"`
	Label string `json:"label"`
	// Out is "" for a candidate that is in the race; else how it left (failed, worse, void,
	// waiting), and Why in words.
	Out string `json:"out,omitempty"`
	Why string `json:"why,omitempty"`
	// Wins is how often it would be the best among those that meet the needs, were the trials repeated.
	Wins float64 `json:"wins"`
	// Figures are the preferred metrics on the quiet day, and Places the first of them for each client.
	Figures []Figure `json:"figures,omitempty"`
	Places  []Figure `json:"places,omitempty"`
	// Audited are trials whose acknowledged writes were read back, LostWrites what was missing then.
	Audited    int    `json:"audited,omitempty"`
	LostWrites int64  `json:"lost_writes,omitempty"`
	Needs      []Need `json:"needs,omitempty"`
	// Runs are the run directories by day, relative to the choice's folder, and Files the experiments.
	Runs  map[string][]string `json:"runs,omitempty"`
	Files map[string]string   `json:"files,omitempty"`
}

// What became of a need.
const (
	Met       = "met"
	NotMet    = "not met"
	Undecided = "not decided"
)

// Need is one need on one day.
type Need struct {
	Text  string `json:"text"`
	Day   string `json:"day"`
	State string `json:"state"`
	// Value is the worst figure that was seen, N in how many trials, and Figure the mean of them with its interval.
	Value  string `json:"value,omitempty"`
	N      int    `json:"n"`
	Figure Figure `json:"figure,omitzero"`

	margin float64 // of the worst
}

// Evidence is what a need's state rests on: "212 ms ± 9 ms in 3 trials, the worst 219 ms"; "" without a trial.
func (n Need) Evidence() string {
	switch {
	case n.N == 0:
		return ""
	case n.Value == "":
		return "it was not measured"
	case n.N == 1:
		return n.Value
	case !n.Figure.HasInterval() || n.Figure.N < n.N:
		return fmt.Sprintf("%s in the worst of %d trials", n.Value, n.N)
	}
	return fmt.Sprintf("%s in %d trials, the worst %s", n.Figure, n.N, n.Value)
}

// WorstNeed sums a need up over its days: the worst counts. Tried is on how many of the days there was a trial that
// decides something.
func (v Verdict) WorstNeed(text string) (worst Need, days, tried int) {
	order := map[string]int{Met: 1, Undecided: 2, NotMet: 3}
	for _, n := range v.Needs {
		if n.Text != text {
			continue
		}
		days++
		if n.N > 0 {
			tried++
		}
		// Of days alike the one that was measured tells more, and a later one, which is bad, than the quiet one.
		if a, b := order[n.State], order[worst.State]; a > b || a == b && (worst.N == 0 || n.N > 0 && n.margin <= worst.margin) {
			worst = n
		}
	}
	return worst, days, tried
}

// newVerdict is what is known of a candidate that stands so.
func (c *Contest) newVerdict(s race.Standing, wins map[string]float64) Verdict {
	x := c.byID[s.Candidate]
	v := Verdict{
		Candidate: x, ID: x.ID(), Label: x.Label(), Out: s.Out, Wins: wins[s.Candidate],
		Runs: map[string][]string{}, Files: map[string]string{},
	}
	switch s.Out {
	case race.Failed:
		v.Why = fmt.Sprintf("%s is not met %s", s.Need, onDay(s.Day))
	case race.Worse:
		v.Why = fmt.Sprintf("%s is better beyond doubt", c.byID[s.Need].Label())
	case race.Void:
		v.Why = fmt.Sprintf("nothing was learnt %s: %s", onDay(s.Day), s.Need)
	case race.Waiting:
		v.Why = "better ones were tried on the bad days first, and sufficed"
		if c.race.Short() {
			v.Why = "the budget was spent before it had had all bad days"
		} else if len(c.race.Next()) > 0 {
			v.Why = "it has not had all bad days yet"
		}
	}
	for _, day := range append([]string{race.Quiet}, c.race.Days...) {
		trials := c.decidingTrials(s.Candidate, day, &v)
		if day == race.Quiet {
			for i, name := range c.Needs.Prefer {
				f, ok := meanFigure(trials, name)
				if i == 0 {
					f = f.ranked(s)
				}
				if ok {
					v.Figures = append(v.Figures, f)
				}
			}
			for _, pool := range c.Needs.poolNames() {
				if f, ok := meanFigure(trials, pool+"."+c.Needs.Prefer[0]); ok {
					v.Places = append(v.Places, f)
				}
			}
		}
		for _, t := range trials {
			if t.Audit != nil {
				v.Audited++
				v.LostWrites += t.Audit.Lost
			}
		}
		v.Needs = append(v.Needs, c.dayNeeds(trials, day)...)
	}
	return v
}

// decidingTrials are those of a candidate on a day that decide something; their runs are noted in v.
func (c *Contest) decidingTrials(candidate, day string, v *Verdict) (decidingTrials []record.Trial) {
	for _, r := range c.race.Results() {
		if r.Candidate != candidate || r.Day != day || c.runs[r.Heat] == nil {
			continue
		}
		if path, err := filepath.Rel(c.Dir, c.runs[r.Heat].Path); err == nil {
			v.Runs[day] = append(v.Runs[day], path)
		}
		if path, err := filepath.Rel(c.Dir, c.experimentPath(candidate, day)); err == nil {
			v.Files[day] = path
		}
		if t, ok := firstTrial(c.runs[r.Heat]); ok && r.Void == "" {
			decidingTrials = append(decidingTrials, t)
		}
	}
	return decidingTrials
}

// dayNeeds are what became of a day's needs.
func (c *Contest) dayNeeds(trials []record.Trial, day string) (dayNeeds []Need) {
	for _, l := range c.Needs.assertions(day) {
		n := Need{Text: l.Text, Day: day, N: len(trials)}
		n.Figure, _ = meanFigure(trials, l.Name)
		sum, worst := 0.0, math.Inf(1)
		for _, t := range trials {
			m := needMargin(l, t)
			sum += m
			if m <= worst {
				worst, n.Value = m, l.Check(t).Value
			}
		}
		switch {
		case len(trials) == 0:
			n.State = Undecided
		case worst >= 0:
			n.State = Met
		case sum < 0 && (math.IsInf(worst, -1) || worst < -c.race.Doubt(len(trials))):
			n.State = NotMet
		default:
			n.State = Undecided
		}
		n.margin = worst
		dayNeeds = append(dayNeeds, n)
	}
	return dayNeeds
}
