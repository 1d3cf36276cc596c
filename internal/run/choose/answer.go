package choose

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/evidence/race"
	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// AnswerSchema is the version of answer.json.
const AnswerSchema = "skerry/answer/v1"

// Answer is the result of a choice.
type Answer struct {
	Schema   string `json:"schema"`
	Sentence string `json:"sentence"`
	// Candidates in order: those that meet the needs by rank, then the others.
	Candidates []Verdict `json:"candidates"`
	// Excluded were not tried.
	Excluded []Excluded `json:"left,omitempty"`
	// Days are the quiet day and the bad ones.
	Days []string `json:"days"`
	// Prefer are the metrics that rank candidates and are shown.
	Prefer  []string `json:"prefer"`
	SpentS  float64  `json:"spent_s"`
	BudgetS float64  `json:"budget_s"`
	Trials  int      `json:"trials"`
	// Void counts trials that decided nothing.
	Void int `json:"void"`
	// Machine is where the trials ran.
	Machine record.Machine `json:"machine"`
	// Noise is the relative deviation of the ranking metric between repetitions, pooled over all candidates.
	Noise float64 `json:"noise"`
	// Sure describes the confidence of the ranking, Changes what would change it.
	Sure    string   `json:"sure,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Clients are the sites of clients, Load describes their requests.
	Clients []string `json:"clients,omitempty"`
	Load    string   `json:"load"`
	Notes   []string `json:"notes,omitempty"`
	// Exhaustive is set if everything was measured, Running while the race continues, and Compared to the
	// comparison with an earlier race in the folder. Repetitions is the number per day: of all candidates,
	// or of the winner.
	Exhaustive  bool   `json:"exhaustive,omitempty"`
	Repetitions int    `json:"repetitions"`
	Running     bool   `json:"running,omitempty"`
	Compared    string `json:"compared,omitempty"`
}

// Answer returns the answer so far.
func (c *Contest) Answer() Answer {
	a := Answer{Schema: AnswerSchema, Excluded: c.Excluded, Days: append([]string{race.Quiet}, c.race.Days...), Prefer: c.Needs.Prefer,
		SpentS: c.race.Spent(), BudgetS: c.race.Budget, Trials: len(c.race.Results()),
		Clients: c.Needs.Client, Load: c.Needs.Load.describe(), Notes: slices.Clone(c.Notes), Exhaustive: c.race.Exhaustive,
		Repetitions: c.Needs.Repetitions}
	for _, x := range c.Candidates {
		if x.Reduced != "" {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: %s. Measured on %d nodes: %s.", x.Database+", "+x.Choice.Name, x.Reduced,
				len(x.Members), strings.Join(x.Members, ", ")))
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
	a.Sentence, a.Sure = a.summarySentence()+a.partSentences(), a.confidence()
	a.Changes = a.changes()
	return a
}

func ReadAnswer(path string) (a Answer, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err == nil && a.Schema != AnswerSchema {
		err = fmt.Errorf("%w: schema is %q, want %s", ErrFolder, a.Schema, AnswerSchema)
	}
	if err != nil {
		return a, fmt.Errorf("read answer %s: %w", path, err)
	}
	return a, nil
}

// Figure is a metric of a candidate over its trials on a day.
type Figure struct {
	Name string      `json:"name"`
	Unit metric.Unit `json:"unit,omitempty"`
	Mean float64     `json:"mean"`
	// Low and High are the 95 % interval, both 0 if there is none.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	N    int     `json:"n"`
}

func (f Figure) HasInterval() bool { return f.Low < f.High }

// String formats the figure with its interval: "3.5 ms (3.0 to 4.0)". The interval determines the number of digits;
// without one there are three.
func (f Figure) String() string {
	if !f.HasInterval() {
		return f.Unit.Format(roundSingle(f.Unit, f.Mean))
	}
	off := max(f.High-f.Mean, f.Mean-f.Low)
	var numbers, units [3]string
	for i, v := range []float64{f.Mean, f.Low, f.High} {
		numbers[i], units[i], _ = strings.Cut(f.Unit.Format(roundTo(v, off)), " ")
	}
	if units[0] != units[1] || units[0] != units[2] {
		return fmt.Sprintf("%s %s (%s %s to %s %s)", numbers[0], units[0], numbers[1], units[1], numbers[2], units[2])
	}
	decimals := 0
	for _, n := range numbers {
		if _, fraction, ok := strings.Cut(n, "."); ok {
			decimals = max(decimals, len(fraction))
		}
	}
	for i, n := range numbers {
		if v, err := strconv.ParseFloat(n, 64); err == nil {
			numbers[i] = strconv.FormatFloat(v, 'f', decimals, 64)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", numbers[0], units[0])) + fmt.Sprintf(" (%s to %s)", numbers[1], numbers[2])
}

// roundTo rounds a value to the digits that an uncertainty supports: one digit of the uncertainty, or two if it begins
// with 1.
func roundTo(v, off float64) float64 {
	place := math.Pow(10, math.Floor(math.Log10(off)))
	if off < 2*place {
		place /= 10
	}
	return math.Round(v/place) * place
}

// roundSingle rounds a value without an interval to three digits. Shares keep two digits of what is missing to 100 %.
func roundSingle(u metric.Unit, v float64) float64 {
	digits := func(v, n float64) float64 {
		if v == 0 {
			return 0
		}
		place := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))+1-n)
		return math.Round(v/place) * place
	}
	if u == metric.Share && v > 0.5 {
		return 1 - digits(1-v, 2)
	}
	return digits(v, 3)
}

// minIntervalTrials is the number of trials from which their scatter gives an interval; that of two trials
// is too wide to be useful.
const minIntervalTrials = 3

// meanFigure returns the mean over trials, with the interval of Student's t. Intervals end at 0 and, for
// shares, at 1.
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
	e := stats.EstimateMean(values)
	f.Mean, f.N = e.Mean, e.N
	if e.N >= minIntervalTrials {
		f.Low, f.High = max(e.Mean-e.HalfWidth, 0), e.Mean+e.HalfWidth
		if f.Unit == metric.Share {
			f.High = min(f.High, 1)
		}
	}
	return f, true
}

// ranked returns the figure that the race ranks by: the geometric mean, with an interval pooled over all
// candidates. So the table is sorted by the displayed values. A share of 1 in all trials is kept.
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

func valueOfScore(u metric.Unit, score float64) float64 {
	switch u {
	case metric.Rate:
		return 1 / score
	case metric.Share:
		return 1 - score
	}
	return score
}
