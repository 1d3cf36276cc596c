package choose

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
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
	Left []Left `json:"left,omitempty"`
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
	Changes []string       `json:"changes,omitempty"`
	// Clients are the sites that requests come from, Load what they ask for, in words.
	Clients []string `json:"clients,omitempty"`
	Load    string   `json:"load"`
	Notes   []string `json:"notes,omitempty"`
	// Exhaustive says that all was measured, Running that the race goes on, and Compared what a race
	// in the same folder had said.
	Exhaustive bool   `json:"exhaustive,omitempty"`
	Running    bool   `json:"running,omitempty"`
	Compared   string `json:"compared,omitempty"`
}

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

// Figure is a metric of a candidate over its quiet trials.
type Figure struct {
	Name string      `json:"name"`
	Unit metric.Unit `json:"unit,omitempty"`
	Mean float64     `json:"mean"`
	// Half is the half-width of the 95 % interval; 0 for one trial, whose noise is not known.
	Half float64 `json:"half"`
	N    int     `json:"n"`
}

// String is the figure with its interval.
func (f Figure) String() string {
	if f.Half == 0 {
		return f.Unit.Write(f.Mean)
	}
	return f.Unit.Write(f.Mean) + " ± " + f.Unit.Write(f.Half)
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
	// Value is the worst figure that was seen, N in how many trials.
	Value string `json:"value,omitempty"`
	N     int    `json:"n"`

	margin float64 // of the worst
}

// Answer says what the race has come to so far.
func (c *Contest) Answer() Answer {
	a := Answer{Schema: AnswerSchema, Left: c.Left, Days: append([]string{race.Quiet}, c.race.Days...), Prefer: c.Needs.Prefer,
		SpentS: c.race.Spent(), BudgetS: c.race.Budget, Trials: len(c.race.Results()),
		Clients: c.Needs.Client, Load: c.Needs.Load.words(), Notes: slices.Clone(c.Notes), Exhaustive: c.race.Exhaustive}
	for _, x := range c.Candidates {
		if x.Reduced != "" {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: %s. Measured with %d: %s.", x.Database+", "+x.Choice.Name, x.Reduced, len(x.Members), strings.Join(x.Members, ", ")))
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
	wins := c.race.Wins(c.Needs.Seed)
	for _, s := range c.race.Standings() {
		a.Candidates = append(a.Candidates, c.verdict(s, wins))
	}
	a.Sentence = a.sentence()
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

// verdict is what is known of a candidate that stands so.
func (c *Contest) verdict(s race.Standing, wins map[string]float64) Verdict {
	x := c.byID[s.Candidate]
	v := Verdict{Candidate: x, ID: x.ID(), Label: x.Label(), Out: s.Out, Wins: wins[s.Candidate], Runs: map[string][]string{}, Files: map[string]string{}}
	switch s.Out {
	case race.Failed:
		v.Why = fmt.Sprintf("%s is not met on the day %q", s.Need, s.Day)
	case race.Worse:
		v.Why = fmt.Sprintf("%s is better beyond doubt", c.byID[s.Need].Label())
	case race.Void:
		v.Why = fmt.Sprintf("nothing was learnt on the day %q: %s", s.Day, s.Need)
	case race.Waiting:
		v.Why = "better ones were tried on the bad days first, and sufficed"
		if c.race.Spent()+1 >= c.race.Budget*0.95 {
			v.Why = "the budget went to better ones"
		}
	}
	for _, day := range append([]string{race.Quiet}, c.race.Days...) {
		trials := c.trials(s.Candidate, day, &v)
		if day == race.Quiet {
			for _, name := range c.Needs.Prefer {
				if f, ok := figureOf(trials, name); ok {
					v.Figures = append(v.Figures, f)
				}
			}
			for _, pool := range c.Needs.pools() {
				if f, ok := figureOf(trials, pool+"."+c.Needs.Prefer[0]); ok {
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
		v.Needs = append(v.Needs, c.needs(trials, day)...)
	}
	return v
}

// trials are those of a candidate on a day that decide something; their runs are noted in v.
func (c *Contest) trials(candidate, day string, v *Verdict) (trials []record.Trial) {
	for _, r := range c.race.Results() {
		if r.Candidate != candidate || r.Day != day || c.runs[r.Heat] == nil {
			continue
		}
		if path, err := filepath.Rel(c.Dir, c.runs[r.Heat].Path); err == nil {
			v.Runs[day] = append(v.Runs[day], path)
		}
		if path, err := filepath.Rel(c.Dir, c.file(candidate, day)); err == nil {
			v.Files[day] = path
		}
		if t, ok := trialOf(c.runs[r.Heat]); ok && r.Void == "" {
			trials = append(trials, t)
		}
	}
	return trials
}

func figureOf(trials []record.Trial, name string) (Figure, bool) {
	var values []float64
	f := Figure{Name: name}
	for _, t := range trials {
		if v, ok := figure(t, name); ok {
			values, f.Unit = append(values, v.V), v.Unit
		}
	}
	if len(values) == 0 {
		return f, false
	}
	e := stats.Of(values)
	f.Mean, f.N = e.Mean, e.N
	if e.HasInterval() {
		f.Half = e.HalfWidth
	}
	return f, true
}

// needs are what became of a day's needs.
func (c *Contest) needs(trials []record.Trial, day string) (needs []Need) {
	for _, l := range c.Needs.lines(day) {
		n := Need{Text: l.Text, Day: day, N: len(trials)}
		sum, worst := 0.0, math.Inf(1)
		for _, t := range trials {
			m := margin(l, t)
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
		needs = append(needs, n)
	}
	return needs
}
