package choose

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
		return "No candidate could be measured to the end."
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

// before tells whether a candidate's first figure is the better one.
func (v Verdict) before(o Verdict) bool {
	if len(o.Figures) == 0 || v.Figures[0].Name != o.Figures[0].Name {
		return false
	}
	if u := v.Figures[0].Unit; u == metric.Rate || u == metric.Share {
		return v.Figures[0].Mean > o.Figures[0].Mean
	}
	return v.Figures[0].Mean < o.Figures[0].Mean
}

// OptionNames are the options of a candidate, in order.
func OptionNames(c Candidate) []string { return slices.Sorted(maps.Keys(c.Options)) }
