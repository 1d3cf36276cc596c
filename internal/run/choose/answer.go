package choose

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"skerry/internal/evidence/race"
	"skerry/internal/record"
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
	a := Answer{Schema: AnswerSchema, Left: c.Left, Days: append([]string{race.Quiet}, c.race.Days...), Prefer: c.Needs.Prefer,
		SpentS: c.race.Spent(), BudgetS: c.race.Budget, Trials: len(c.race.Results()),
		Clients: c.Needs.Client, Load: c.Needs.Load.words(), Notes: slices.Clone(c.Notes), Exhaustive: c.race.Exhaustive, Repetitions: c.Needs.Repetitions}
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
	a.Noise = c.race.Noise()
	wins := c.race.Wins(c.Needs.Seed)
	for _, s := range c.race.Standings() {
		a.Candidates = append(a.Candidates, c.verdict(s, wins))
	}
	a.Sentence, a.Sure = a.sentence(), a.sure()
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
