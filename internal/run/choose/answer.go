package choose

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"skerry/internal/evidence/race"
	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// AnswerSchema versions answer.json.
const AnswerSchema = "skerry/answer/v1"

// Answer is what came of a choice.
type Answer struct {
	Schema   string `json:"schema"`
	Sentence string `json:"sentence"`
	// Candidates in order: those that meet the needs by rank, then those that do not.
	Candidates []Verdict `json:"candidates"`
	// Left were not tried.
	Excluded []Excluded `json:"left,omitempty"`
	// Days are the quiet day and the bad ones.
	Days []string `json:"days"`
	// Prefer are the metrics that candidates were ranked by and shown with.
	Prefer  []string `json:"prefer"`
	SpentS  float64  `json:"spent_s"`
	BudgetS float64  `json:"budget_s"`
	Trials  int      `json:"trials"`
	// Void are trials that decided nothing.
	Void int `json:"void"`
	// Cores and Memory are the machine's that measured.
	Machine record.Machine `json:"machine"`
	// Noise is the relative deviation of what ranks between repetitions, pooled over all candidates.
	Noise float64 `json:"noise"`
	// Sure says how sure the ranking is, in words, Changes what would change it.
	Sure    string   `json:"sure,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Clients are the sites that requests come from, Load what they ask for, in words.
	Clients []string `json:"clients,omitempty"`
	Load    string   `json:"load"`
	Notes   []string `json:"notes,omitempty"`
	// Exhaustive says that all was measured, Running that the race goes on, and Compared what a race in the same
	// folder had said. Repetitions is how often days were to be measured: all of them, or those of the winner.
	Exhaustive  bool   `json:"exhaustive,omitempty"`
	Repetitions int    `json:"repetitions"`
	Running     bool   `json:"running,omitempty"`
	Compared    string `json:"compared,omitempty"`
}

// Answer says what the race has come to so far.
func (c *Contest) Answer() Answer {
	a := Answer{Schema: AnswerSchema, Excluded: c.Excluded, Days: append([]string{race.Quiet}, c.race.Days...), Prefer: c.Needs.Prefer,
		SpentS: c.race.Spent(), BudgetS: c.race.Budget, Trials: len(c.race.Results()),
		Clients: c.Needs.Client, Load: c.Needs.Load.describe(), Notes: slices.Clone(
			c.Notes,
		), Exhaustive: c.race.Exhaustive, Repetitions: c.Needs.Repetitions}
	for _, x := range c.Candidates {
		if x.Reduced != "" {
			a.Notes = append(
				a.Notes,
				fmt.Sprintf("%s: %s. Measured with %d: %s.", x.Database+", "+x.Choice.Name, x.Reduced, len(x.Members), strings.Join(x.Members, ", ")),
			)
		}
	}
	for _, r := range c.race.Results() {
		if r.Void != "" {
			a.Void++
		}
		if d := c.runs[r.Heat]; d != nil {
			a.Machine = d.Run.Host
		}
	}
	a.Noise = c.race.Noise()
	wins := c.race.Wins(c.Needs.Seed)
	for _, s := range c.race.Standings() {
		a.Candidates = append(a.Candidates, c.newVerdict(s, wins))
	}
	a.Sentence, a.Sure = a.summarySentence(), a.confidence()
	a.Changes = a.changes()
	return a
}

// ReadAnswer reads what answer.json has.
func ReadAnswer(path string) (a Answer, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err == nil && a.Schema != AnswerSchema {
		err = fmt.Errorf("%w: it is %q, not %s", ErrFolder, a.Schema, AnswerSchema)
	}
	if err != nil {
		return a, fmt.Errorf("reading the answer %s: %w", path, err)
	}
	return a, nil
}

// Figure is a metric of a candidate over its trials on a day.
type Figure struct {
	Name string      `json:"name"`
	Unit metric.Unit `json:"unit,omitempty"`
	Mean float64     `json:"mean"`
	// Low and High are the ends of the 95 % interval, both 0 where there is none.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	N    int     `json:"n"`
}

// HasInterval tells whether Low and High mean anything.
func (f Figure) HasInterval() bool { return f.Low < f.High }

// maxSymmetricShare is the share of the figure from which on an interval is told by its ends: it is lopsided then, as one is
// that ends at the whole.
const maxSymmetricShare = 0.25

// String is the figure with its interval: "212 ms ± 9 ms", "212 ms (110 ms to 420 ms)". It has the digits
// that the interval leaves sure: two of the interval's own.
func (f Figure) String() string {
	if !f.HasInterval() {
		return f.Unit.Write(f.Mean)
	}
	half := max(f.High-f.Mean, f.Mean-f.Low)
	write := func(v float64) string { return f.Unit.Write(roundTo(v, half)) }
	if half <= maxSymmetricShare*math.Abs(f.Mean) && (f.Unit != metric.Share || f.High < 1) {
		return write(f.Mean) + " ± " + write(half)
	}
	return write(f.Mean) + " (" + write(f.Low) + " to " + write(f.High) + ")"
}

// roundTo rounds to the place of the second digit of how far off a figure may be.
func roundTo(v, off float64) float64 {
	place := math.Pow(10, math.Floor(math.Log10(off))-1)
	return math.Round(v/place) * place
}

// minIntervalTrials is how many trials a figure needs before their own scatter makes an interval: that of two is
// many times as wide as what they differ by, and tells nothing.
const minIntervalTrials = 3

// meanFigure is the mean over trials, with the interval of Student's t where there are enough of them. No figure is
// negative, and no share more than the whole.
func meanFigure(trials []record.Trial, name string) (Figure, bool) {
	var values []float64
	f := Figure{Name: name}
	for _, t := range trials {
		if v, ok := trialFigure(t, name); ok {
			values, f.Unit = append(values, v.V), v.Unit
		}
	}
	if len(values) == 0 {
		return f, false
	}
	e := stats.Of(values)
	f.Mean, f.N = e.Mean, e.N
	if e.N >= minIntervalTrials {
		f.Low, f.High = max(e.Mean-e.HalfWidth, 0), e.Mean+e.HalfWidth
		if f.Unit == metric.Share {
			f.High = min(f.High, 1)
		}
	}
	return f, true
}

// ranked is a figure as the race ranks by it: the geometric mean, with an interval by what repetitions of all
// candidates differ by. So the table is in the order of what it shows. A share that all trials had in full stays so.
func (f Figure) ranked(s race.Standing) Figure {
	if s.Quiet == 0 || f.Unit == metric.Share && f.Mean == 1 {
		return f
	}
	f.Mean, f.N = valueOfScore(f.Unit, s.Score), s.Quiet
	if s.Quiet > 1 {
		a, b := valueOfScore(f.Unit, s.Low), valueOfScore(f.Unit, s.High)
		f.Low, f.High = min(a, b), max(a, b)
	}
	return f
}

// valueOfScore is the value that has a score.
func valueOfScore(u metric.Unit, score float64) float64 {
	switch u {
	case metric.Rate:
		return 1 / score
	case metric.Share:
		return 1 - score
	}
	return score
}
