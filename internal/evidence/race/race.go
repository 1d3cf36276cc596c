// Package race decides which trials are worth their time where the best of many candidates is
// looked for: all are tried a little, those that are worse or fail beyond doubt go, and what is
// left of the budget is spent on those that are close. It is pure: trials are asked for by Next
// and told by Tell, and the same trials told again lead to the same decisions.
//
//	quiet day, each once ─► bad days, the best few ─► quiet day again, those that are close ─► bad days again, the winner
//	                             ▲       │ fails
//	                             └───────┘ the next best
//
// Scores and margins are compared as logarithms: noise of response times is relative. The idea is
// that of racing (Maron and Moore, Hoeffding Races, 1994) with t-tests in place of bounds, and
// of sampling the top two more often (Russo, Simple Bayesian Algorithms for Best-Arm
// Identification, 2020).
package race

import (
	"cmp"
	"math"
	"slices"
)

// Quiet is the day on which nothing happens.
const Quiet = "quiet"

// Heat is one trial: a candidate on a day for the n-th time, from 1.
type Heat struct {
	Candidate string `json:"candidate"`
	Day       string `json:"day"`
	N         int    `json:"n"`
}

// Result is what came of a heat.
type Result struct {
	Heat
	// Void says why the heat decides nothing: it failed, is suspect, or was bound by the machine.
	Void string
	// Score is what counts on the quiet day: above 0, less is better.
	Score float64
	// Margins tell by how much each need was met, by its text: the logarithm of limit over figure
	// or of figure over limit, below 0 where it was not met; infinite where it is a count, which
	// has no noise. Needs that say nothing of the day are left out.
	Margins map[string]float64
	// Cost of the heat, in the budget's unit.
	Cost float64
}

// Config is what a race is held by.
type Config struct {
	Candidates []string
	// Days are the bad ones, in the order in which they are tried.
	Days   []string
	Budget float64
	// Guess is what a quiet heat costs as long as none has been told, BadGuess what one of a bad day does.
	Guess, BadGuess float64
	// Repetitions of the winner, at least, on each day.
	Repetitions int
	// Exhaustive has all days of all candidates repeated, whatever they say and cost: what a race is
	// compared with.
	Exhaustive bool
}

// Outs are the ways in which a candidate leaves the race.
const (
	Failed  = "failed"  // a need is not met
	Worse   = "worse"   // another is better
	Void    = "void"    // it could not be measured
	Waiting = "waiting" // the budget went to better ones
)

// Standing is where a candidate is.
type Standing struct {
	Candidate string
	Out       string // "" while it is in the race
	Need, Day string // what failed, and when; Void: Need is why
	// Score is the geometric mean of its quiet days, Low and High the 95 % interval; 0 without one.
	Score, Low, High float64
	Quiet            int  // quiet days
	Tried            bool // on all bad days
}

// Race is a race under way.
type Race struct {
	Config
	results []Result
	cells   map[cell][]Result // without void ones
	void    map[cell][]Result

	stats *statistics // what follows from the results, nil when they have changed
}

type cell struct{ candidate, day string }

// maxFinalists are how many candidates without a failed need the bad days look for.
const maxFinalists = 3

// maxAttempts are how often a cell that yields nothing is tried.
const maxAttempts = 2

// New is a race that has not begun.
func New(c Config) *Race {
	c.Repetitions = max(1, c.Repetitions)
	return &Race{Config: c, cells: map[cell][]Result{}, void: map[cell][]Result{}}
}

// AddResult adds what came of a heat.
func (r *Race) AddResult(x Result) {
	r.results, r.stats = append(r.results, x), nil
	at := cell{x.Candidate, x.Day}
	if x.Void != "" {
		r.void[at] = append(r.void[at], x)
		return
	}
	r.cells[at] = append(r.cells[at], x)
}

// Results are all that were told.
func (r *Race) Results() []Result { return slices.Clone(r.results) }

// Spent is what the heats so far have cost.
func (r *Race) Spent() (sum float64) {
	for _, x := range r.results {
		sum += x.Cost
	}
	return sum
}

// Next are the heats that are worth their time now, most urgent first; none when the race is over.
// They may run in any order, or side by side.
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

// BudgetExhausted tells whether the race ended because its budget did not suffice for what was worth its time.
func (r *Race) BudgetExhausted() bool { return !r.Exhaustive && len(r.Next()) < len(r.wantedHeats()) }

// budgetLeft is what is left of the budget.
func (r *Race) budgetLeft() float64 { return r.Budget - r.Spent() }

// gridHeats are the heats that are left of all of them.
func (r *Race) gridHeats() []Heat {
	for n := 1; n <= r.Repetitions; n++ {
		for _, day := range append([]string{Quiet}, r.Days...) {
			heats := slices.DeleteFunc(r.missingHeats(r.Candidates, day, n), func(h Heat) bool { return len(r.void[cell{h.Candidate, h.Day}]) >= maxAttempts })
			if len(heats) > 0 {
				return heats
			}
		}
	}
	return nil
}

// wantedHeats are the heats of the earliest stage that is not finished.
func (r *Race) wantedHeats() []Heat {
	if heats := r.missingHeats(r.contenders(r.Candidates), Quiet, 1); len(heats) > 0 {
		return heats
	}
	ranked := r.contenders(r.Ranking())
	// The noise is learnt from those who most likely need a second quiet day anyway, where that leaves enough for
	// the bad days of the best.
	again := r.missingHeats(ranked[:min(maxFinalists, len(ranked))], Quiet, 2)
	if len(again) > 0 && r.remainingCost(ranked[:1])+r.cost(Quiet)*float64(len(again)) <= r.budgetLeft() {
		return again
	}
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

// contenders are those of the candidates that are in the race.
func (r *Race) contenders(candidates []string) (contenders []string) {
	for _, c := range candidates {
		if s := r.judge(c); s.Out == "" {
			contenders = append(contenders, c)
		}
	}
	return contenders
}

// pickFinalists are the candidates that the bad days are for: the best few, so that where one of them
// fails the next best comes in its place. They are as few as the budget carries through all days: one that met its
// needs on every day is an answer, and three that were left half-way are none.
func (r *Race) pickFinalists(ranked []string) []string {
	few := ranked[:min(maxFinalists, len(ranked))]
	for len(few) > 1 && r.remainingCost(few) > r.budgetLeft() {
		few = few[:len(few)-1]
	}
	return few
}

// remainingCost is what it costs to take candidates through the bad days that they have not had.
func (r *Race) remainingCost(candidates []string) (sum float64) {
	for _, day := range r.Days {
		sum += r.cost(day) * float64(len(r.missingHeats(candidates, day, 1)))
	}
	return sum
}

// missingHeats are the heats that candidates lack to have had a day so often.
func (r *Race) missingHeats(candidates []string, day string, often int) (heats []Heat) {
	for _, c := range candidates {
		at := cell{c, day}
		if had := len(r.cells[at]); had < often {
			heats = append(heats, Heat{c, day, had + len(r.void[at]) + 1})
		}
	}
	return heats
}

// closeHeats is one more quiet day for the two that are most likely the best and not told apart.
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
		return heats[:1] // the one of which less is known
	}
	return heats
}

// budgetReserved tells whether what is left of the budget is needed to confirm the winner.
func (r *Race) budgetReserved() bool {
	bad := 0.0
	for _, day := range r.Days {
		bad += r.cost(day)
	}
	return r.budgetLeft() < float64(r.Repetitions-1)*bad+2*r.cost(Quiet)
}

// confirmingHeats repeats the winner's days.
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

// cost is what a heat of a day takes: by those of its kind so far, quiet or bad, else by the guess, as far as
// guesses were right.
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

// Ranking is all candidates with a score, the best first.
func (r *Race) Ranking() []string {
	var ranked []string
	for _, c := range r.Candidates {
		if len(r.cells[cell{c, Quiet}]) > 0 {
			ranked = append(ranked, c)
		}
	}
	slices.SortStableFunc(ranked, func(a, b string) int { return cmp.Compare(r.meanLogScore(a), r.meanLogScore(b)) })
	return ranked
}
