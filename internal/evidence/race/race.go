// Package race decides which trial to run next in the search for the best of many candidates. All candidates run a
// little; those that are clearly worse or fail leave; the rest of the budget goes to the close ones. The package does no
// I/O: Next returns the next trials, AddResult adds their results, and the same results give the same decisions.
//
//	quiet day, each once ─► bad days, the best few ─► quiet day again, close candidates ─► bad days again, the winner
//	                             ▲       │ fails
//	                             └───────┘ next best
//
// Scores and margins are compared as logarithms, since noise of response times is relative. The method is racing
// (Maron and Moore, Hoeffding Races, 1994) with t-tests instead of bounds, and more samples for the top two (Russo,
// Simple Bayesian Algorithms for Best-Arm Identification, 2020).
package race

import (
	"cmp"
	"math"
	"slices"
)

// Quiet is the day without events.
const Quiet = "quiet"

// Heat is one trial: a candidate on a day for the n-th time, from 1.
type Heat struct {
	Candidate string `json:"candidate"`
	Day       string `json:"day"`
	N         int    `json:"n"`
}

// Result is the result of a heat.
type Result struct {
	Heat
	// Void is the reason if the heat decides nothing: it failed, is suspect, or was limited by the machine.
	Void string
	// Score counts on the quiet day; it is above 0, and lower is better.
	Score float64
	// Margins are the margins of the needs, by their text: the logarithm of limit over figure or of figure
	// over limit. A negative margin is a failure. Counts have no noise and an infinite margin. Needs that do not
	// concern the day are absent.
	Margins map[string]float64
	// Cost of the heat, in the budget's unit.
	Cost float64
}

// Config sets the rules of a race.
type Config struct {
	Candidates []string
	// Days are the bad days, in the order of execution.
	Days   []string
	Budget float64
	// Guess and BadGuess are the assumed costs of a quiet and a bad heat until results are known.
	Guess, BadGuess float64
	// Repetitions is the minimum number of heats of the winner on each day.
	Repetitions int
	// Partial lists the candidates that can be measured in part only, each with the bad days that cannot happen to it. They
	// run the other days with what the budget leaves, and cannot win.
	Partial map[string][]string
	// Exhaustive repeats all days of all candidates regardless of results and cost, as a reference for a race.
	Exhaustive bool
}

const (
	Failed  = "failed"  // a need is not met
	Worse   = "worse"   // another candidate is better
	Void    = "void"    // measurement impossible
	Waiting = "waiting" // the budget was spent on better candidates
	Partly  = "partly"  // nothing failed, but it can be measured in part only
)

// Standing is the state of a candidate.
type Standing struct {
	Candidate string
	Out       string // "" in the race
	Need, Day string // failed need and its day; for Void, the reason
	// Score is the geometric mean of its quiet days, Low and High are the 95 % interval; 0 without one.
	Score, Low, High float64
	Quiet            int  // quiet days
	Tried            bool // ran on all days
}

// Race is a race in progress.
type Race struct {
	Config
	results []Result
	cells   map[cell][]Result // without void ones
	void    map[cell][]Result

	stats *statistics // derived from the results; nil when outdated
}

type cell struct{ candidate, day string }

// maxFinalists is the number of candidates without a failed need that run the bad days.
const maxFinalists = 3

const maxAttempts = 2

// New returns a race without results.
func New(c Config) *Race {
	c.Repetitions = max(1, c.Repetitions)
	return &Race{Config: c, cells: map[cell][]Result{}, void: map[cell][]Result{}}
}

// AddResult adds the result of a heat.
func (r *Race) AddResult(x Result) {
	r.results, r.stats = append(r.results, x), nil
	at := cell{x.Candidate, x.Day}
	if x.Void != "" {
		r.void[at] = append(r.void[at], x)
		return
	}
	r.cells[at] = append(r.cells[at], x)
}

// Results returns all results.
func (r *Race) Results() []Result { return slices.Clone(r.results) }

// Spent is the cost of the heats so far.
func (r *Race) Spent() (sum float64) {
	for _, x := range r.results {
		sum += x.Cost
	}
	return sum
}

// Next returns the most useful heats, most urgent first; none when the race is over. They may run in any order, or
// concurrently.
func (r *Race) Next() []Heat {
	if r.Exhaustive {
		return r.gridHeats()
	}
	heats, left := r.wantedHeats(), r.budgetLeft()
	for i, h := range heats {
		if left -= r.cost(h.Day); left < -1e-9 {
			return heats[:i]
		}
	}
	return heats
}

// BudgetExhausted reports whether the race ended because its budget did not suffice.
func (r *Race) BudgetExhausted() bool { return !r.Exhaustive && len(r.Next()) < len(r.wantedHeats()) }

func (r *Race) budgetLeft() float64 { return r.Budget - r.Spent() }

func (r *Race) gridHeats() []Heat {
	for n := 1; n <= r.Repetitions; n++ {
		for _, day := range append([]string{Quiet}, r.Days...) {
			heats := slices.DeleteFunc(r.missingHeats(r.Candidates, day, n),
				func(h Heat) bool { return len(r.void[cell{h.Candidate, h.Day}]) >= maxAttempts })
			if len(heats) > 0 {
				return heats
			}
		}
	}
	return nil
}

func (r *Race) wantedHeats() []Heat {
	if heats := r.missingHeats(r.contenders(r.Candidates), Quiet, 1); len(heats) > 0 {
		return heats
	}
	ranked := r.contenders(r.ranking())
	// The noise is estimated from the candidates that most likely need a second quiet day anyway, if the budget
	// still covers the bad days of the best candidate.
	full := slices.DeleteFunc(slices.Clone(ranked), r.isPartial)
	again := r.missingHeats(ranked[:min(maxFinalists, len(ranked))], Quiet, 2)
	if len(again) > 0 && r.remainingCost(full[:min(1, len(full))])+r.cost(Quiet)*float64(len(again)) <= r.budgetLeft() {
		return again
	}
	if heats := r.finalHeats(full); len(heats) > 0 {
		return heats
	}
	return r.finalHeats(slices.DeleteFunc(ranked, func(c string) bool { return !r.isPartial(c) }))
}

func (r *Race) isPartial(candidate string) bool {
	_, partial := r.Partial[candidate]
	return partial
}

// finalHeats returns the next heats of candidates that all have run the quiet day.
func (r *Race) finalHeats(ranked []string) []Heat {
	trying := r.pickFinalists(ranked)
	for _, day := range r.Days {
		if heats := r.missingHeats(trying, day, 1); len(heats) > 0 {
			return heats
		}
	}
	if heats := r.closeHeats(trying); len(heats) > 0 {
		return heats
	}
	return r.confirmingHeats(trying)
}

func (r *Race) contenders(candidates []string) (contenders []string) {
	for _, c := range candidates {
		if s := r.judge(c); s.Out == "" {
			contenders = append(contenders, c)
		}
	}
	return contenders
}

// pickFinalists returns the candidates for the bad days: the best few, so that the next best replaces one that fails.
// Their number is limited to those that the budget carries through all days, since one complete candidate is an answer
// and three incomplete ones are none.
func (r *Race) pickFinalists(ranked []string) []string {
	few := ranked[:min(maxFinalists, len(ranked))]
	for len(few) > 1 && r.remainingCost(few) > r.budgetLeft() {
		few = few[:len(few)-1]
	}
	return few
}

func (r *Race) remainingCost(candidates []string) (sum float64) {
	for _, day := range r.Days {
		sum += r.cost(day) * float64(len(r.missingHeats(candidates, day, 1)))
	}
	return sum
}

func (r *Race) missingHeats(candidates []string, day string, often int) (heats []Heat) {
	for _, c := range candidates {
		if slices.Contains(r.Partial[c], day) {
			continue
		}
		at := cell{c, day}
		if had := len(r.cells[at]); had < often {
			heats = append(heats, Heat{c, day, had + len(r.void[at]) + 1})
		}
	}
	return heats
}

// closeHeats returns one more quiet day for the top two if their scores are not separated.
func (r *Race) closeHeats(trying []string) []Heat {
	if len(trying) < 2 {
		return nil
	}
	best, second := trying[0], trying[1]
	if r.separation(best, second) >= r.statistics().sure || r.budgetReserved() {
		return nil
	}
	heats := make([]Heat, 0, 2)
	for _, c := range []string{best, second} {
		at := cell{c, Quiet}
		heats = append(heats, Heat{c, Quiet, len(r.cells[at]) + len(r.void[at]) + 1})
	}
	slices.SortStableFunc(heats, func(a, b Heat) int { return cmp.Compare(a.N, b.N) })
	if heats[0].N < heats[1].N {
		return heats[:1] // the candidate with fewer results
	}
	return heats
}

func (r *Race) budgetReserved() bool {
	bad := 0.0
	for _, day := range r.Days {
		bad += r.cost(day)
	}
	return r.budgetLeft() < float64(r.Repetitions-1)*bad+2*r.cost(Quiet)
}

func (r *Race) confirmingHeats(trying []string) []Heat {
	if len(trying) == 0 {
		return nil
	}
	for n := 2; n <= r.Repetitions; n++ {
		var heats []Heat
		for _, day := range append([]string{Quiet}, r.Days...) {
			heats = append(heats, r.missingHeats(trying[:1], day, n)...)
		}
		if len(heats) > 0 {
			return heats
		}
	}
	return nil
}

// cost estimates the cost of a heat: the mean of its kind (quiet or bad), else the guess, corrected by the error of the
// guesses so far.
func (r *Race) cost(day string) float64 {
	guess := func(day string) float64 {
		if day == Quiet {
			return r.Guess
		}
		return cmp.Or(r.BadGuess, r.Guess)
	}
	var alike, kind, guessed float64
	for _, x := range r.results {
		guessed += guess(x.Day)
		if (x.Day == Quiet) == (day == Quiet) {
			alike, kind = alike+x.Cost, kind+1
		}
	}
	switch {
	case kind > 0:
		return math.Max(alike/kind, 1e-9)
	case guessed > 0:
		return math.Max(guess(day)*r.Spent()/guessed, 1e-9)
	}
	return guess(day)
}

func (r *Race) ranking() []string {
	var ranked []string
	for _, c := range r.Candidates {
		if len(r.cells[cell{c, Quiet}]) > 0 {
			ranked = append(ranked, c)
		}
	}
	slices.SortStableFunc(ranked, func(a, b string) int { return cmp.Compare(r.meanLogScore(a), r.meanLogScore(b)) })
	return ranked
}
