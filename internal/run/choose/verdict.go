package choose

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"skerry/internal/evidence/race"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// Verdict is the result of a candidate.
type Verdict struct {
	Candidate
	ID    string `json:"id"`
	Label string `json:"label"`
	// Out is "" for a candidate in the race; otherwise failed, worse, void or waiting, and Why the reason.
	Out string `json:"out,omitempty"`
	Why string `json:"why,omitempty"`
	// Wins is the share of repetitions of all trials in which it would rank first among those that meet the
	// needs.
	Wins float64 `json:"wins"`
	// Figures are the preferred metrics on the quiet day, Places the first of them for each client.
	Figures []Figure `json:"figures,omitempty"`
	Places  []Figure `json:"places,omitempty"`
	// Audited counts trials with an audit, LostWrites the acknowledged writes that were missing.
	Audited    int    `json:"audited,omitempty"`
	LostWrites int64  `json:"lost_writes,omitempty"`
	Needs      []Need `json:"needs,omitempty"`
	// Runs are the run directories by day, relative to the choice's folder, Files the experiments.
	Runs  map[string][]string `json:"runs,omitempty"`
	Files map[string]string   `json:"files,omitempty"`
}

const (
	Met       = "met"
	NotMet    = "not met"
	Undecided = "not decided"
	// NotMeasured: the need cannot be measured on the candidate.
	NotMeasured = "not measured"
)

// Need is one need on one day.
type Need struct {
	Text  string `json:"text"`
	Day   string `json:"day"`
	State string `json:"state"`
	// Why is the reason of NotMeasured.
	Why string `json:"why,omitempty"`
	// Value is the worst value, N the number of trials, and Figure the mean with its interval.
	Value  string `json:"value,omitempty"`
	N      int    `json:"n"`
	Figure Figure `json:"figure,omitzero"`

	margin float64 // of the worst value
}

// Evidence describes the measurements: "212 ms (203 to 221) in 3 trials, the worst 219 ms"; without a
// trial, why there is none, if that is known.
func (n Need) Evidence() string {
	switch {
	case n.N == 0:
		return n.Why
	case n.Value == "":
		return "not measured"
	case n.N == 1:
		return n.Value
	case !n.Figure.HasInterval() || n.Figure.N < n.N:
		return fmt.Sprintf("%s in the worst of %d trials", n.Value, n.N)
	}
	return fmt.Sprintf("%s in %d trials, the worst %s", n.Figure, n.N, n.Value)
}

// WorstNeed returns the worst state of a need over its days, the number of days, and of those with a
// deciding trial.
func (v Verdict) WorstNeed(text string) (worst Need, days, tried int) {
	order := map[string]int{Met: 1, Undecided: 2, NotMeasured: 3, NotMet: 4}
	for _, n := range v.Needs {
		if n.Text != text {
			continue
		}
		days++
		if n.N > 0 {
			tried++
		}
		// Of equal states, a measured day counts more than others, and a bad day more than the quiet one.
		if a, b := order[n.State], order[worst.State]; a > b || a == b && (worst.N == 0 || n.N > 0 && n.margin <= worst.margin) {
			worst = n
		}
	}
	return worst, days, tried
}

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
		v.Why = fmt.Sprintf("%s is clearly better", c.byID[s.Need].Label())
	case race.Void:
		v.Why = fmt.Sprintf("no usable trial %s: %s", onDay(s.Day), s.Need)
	case race.Partly:
		v.Why = "not measured in full: " + strings.Join(x.NotMeasured, "; ")
	case race.Waiting:
		v.Why = "better candidates met all needs first"
		if c.race.BudgetExhausted() {
			v.Why = "the budget ended before it was tried on all bad days"
		} else if len(c.race.Next()) > 0 {
			v.Why = "not tried on all bad days yet"
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
			if x.Own != "" && t.Machine != nil {
				v.Version = t.Machine.Database
			}
			if t.Audit != nil {
				v.Audited++
				v.LostWrites += t.Audit.Lost
			}
		}
		v.Needs = append(v.Needs, c.dayNeeds(x, trials, day)...)
	}
	return v
}

// decidingTrials returns the trials of a candidate on a day that decide something, and notes their runs in
// v.
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

// formatMeasured rounds the measured value of a need, unless rounding would hide on which side of the limit it is.
func formatMeasured(l metric.Assertion, a record.Assertion) string {
	if a.Measured == nil || a.AtLeast || l.Equality() {
		return a.Value
	}
	exact, limit := *a.Measured, l.Value()
	v := roundSingle(l.Metric.Unit, exact)
	if v == limit || (v < limit) != (exact < limit) {
		return a.Value
	}
	return l.Metric.Unit.Format(v)
}

func (c *Contest) dayNeeds(x Candidate, trials []record.Trial, day string) (dayNeeds []Need) {
	for _, l := range c.Needs.assertions(day) {
		if why := x.unmeasured(l, day); why != "" {
			dayNeeds = append(dayNeeds, Need{Text: l.Text, Day: day, State: NotMeasured, Why: why})
			continue
		}
		n := Need{Text: l.Text, Day: day, N: len(trials)}
		n.Figure, _ = meanFigure(trials, l.Name)
		sum, worst := 0.0, math.Inf(1)
		for _, t := range trials {
			m := needMargin(l, t)
			sum += m
			if m <= worst {
				worst, n.Value = m, formatMeasured(l, l.Check(t))
			}
		}
		switch {
		case len(trials) == 0:
			n.State = Undecided
		case worst >= 0:
			n.State = Met
		case sum < 0 && (math.IsInf(worst, -1) || worst < -c.race.MarginError(len(trials))):
			n.State = NotMet
		default:
			n.State = Undecided
		}
		n.margin = worst
		dayNeeds = append(dayNeeds, n)
	}
	return dayNeeds
}
