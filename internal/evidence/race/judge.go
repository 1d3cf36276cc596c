package race

import (
	"math"
	"math/rand/v2"
	"slices"

	"skerry/internal/evidence/stats"
)

const (
	// priorNoise is the assumed relative deviation between repetitions, with the weight of priorWeight degrees of
	// freedom.
	priorNoise, priorWeight = 0.08, 3.0
	// sure is the probability from which on two candidates count as separated; doubtless is that for removing a
	// candidate.
	sure, doubtless = 0.975, 0.999
)

type statistics struct {
	// deviation is that of the logarithm of a score between repetitions, pooled over all candidates, with freedom
	// degrees of freedom.
	deviation, freedom float64
	// sure and doubtless are the numbers of standard errors of these probabilities.
	sure, doubtless float64
	standings       map[string]Standing
}

func (r *Race) statistics() *statistics {
	if r.stats == nil {
		r.stats = &statistics{standings: map[string]Standing{}}
		r.stats.deviation, r.stats.freedom = r.noise()
		r.stats.sure = stats.StudentQuantile(sure, r.stats.freedom)
		r.stats.doubtless = stats.StudentQuantile(doubtless, r.stats.freedom)
		for _, c := range r.Candidates {
			r.stats.standings[c] = r.judgeAlone(c)
		}
	}
	return r.stats
}

// halfWidth is the half-width of the 95 % interval of a mean of n logarithms.
func (k *statistics) halfWidth(n int) float64 { return k.sure * k.deviation / math.Sqrt(float64(n)) }

func (r *Race) meanLogScore(candidate string) float64 {
	scores := r.cells[cell{candidate, Quiet}]
	var sum float64
	for _, x := range scores {
		sum += math.Log(x.Score)
	}
	return sum / float64(len(scores))
}

func (r *Race) noise() (deviation, freedom float64) {
	squares := priorNoise * priorNoise * priorWeight
	freedom = priorWeight
	for _, c := range r.Candidates {
		scores := r.cells[cell{c, Quiet}]
		if len(scores) < 2 {
			continue
		}
		mean := r.meanLogScore(c)
		for _, x := range scores {
			d := math.Log(x.Score) - mean
			squares += d * d
		}
		freedom += float64(len(scores) - 1)
	}
	return math.Sqrt(squares / freedom), freedom
}

// separation is the difference of a's and b's scores in standard errors.
func (r *Race) separation(a, b string) float64 {
	na, nb := float64(len(r.cells[cell{a, Quiet}])), float64(len(r.cells[cell{b, Quiet}]))
	return (r.meanLogScore(b) - r.meanLogScore(a)) / (r.statistics().deviation * math.Sqrt(1/na+1/nb))
}

// judge decides whether a candidate is still in the race, from its own results and those of better candidates.
func (r *Race) judge(candidate string) Standing {
	alone := r.statistics().standings
	s := alone[candidate]
	if s.Out != "" || s.Quiet == 0 {
		return s
	}
	for _, other := range r.Candidates {
		if other == candidate {
			continue
		}
		o := alone[other]
		// Only a candidate that met its needs on every day removes another: a faster one may still fail.
		if o.Out == "" && o.Quiet > 0 && o.Tried && r.separation(other, candidate) >= r.stats.doubtless {
			s.Out, s.Need = Worse, other
			break
		}
	}
	return s
}

func (r *Race) judgeAlone(candidate string) Standing {
	s := Standing{Candidate: candidate, Quiet: len(r.cells[cell{candidate, Quiet}]), Tried: !r.isPartial(candidate)}
	for _, day := range append([]string{Quiet}, r.Days...) {
		at := cell{candidate, day}
		if len(r.cells[at]) == 0 {
			s.Tried = false
			if void := r.void[at]; len(void) >= maxAttempts && s.Out == "" {
				s.Out, s.Need, s.Day = Void, void[len(void)-1].Void, day
			}
			continue
		}
		if need := r.failedNeed(at); need != "" && s.Out == "" {
			s.Out, s.Need, s.Day = Failed, need, day
		}
	}
	if s.Quiet > 0 {
		mean := r.meanLogScore(candidate)
		half := r.stats.halfWidth(s.Quiet)
		s.Score, s.Low, s.High = math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half)
	}
	return s
}

// failedNeed returns a need that a candidate certainly failed on a day: a count once, or a figure beyond its limit by
// more than the noise explains; "" if there is none.
func (r *Race) failedNeed(at cell) string {
	sums := map[string]float64{}
	var needs []string
	for _, x := range r.cells[at] {
		for need, margin := range x.Margins {
			if _, known := sums[need]; !known {
				needs = append(needs, need)
			}
			sums[need] += margin
		}
	}
	slices.Sort(needs)
	n := float64(len(r.cells[at]))
	bound := r.stats.halfWidth(len(r.cells[at]))
	for _, need := range needs {
		// From three repetitions on, the mean alone decides.
		if sums[need]/n < -bound || n >= 3 && sums[need] < 0 {
			return need
		}
	}
	return ""
}

// Standings returns all candidates: first those in the race, each group by score.
func (r *Race) Standings() []Standing {
	ranked := r.ranking()
	for _, c := range r.Candidates {
		if !slices.Contains(ranked, c) {
			ranked = append(ranked, c)
		}
	}
	var in, out []Standing
	for _, c := range ranked {
		s := r.judge(c)
		switch {
		case s.Out == "" && s.Tried:
			in = append(in, s)
		case s.Out == "" && r.isPartial(c) && s.Quiet > 0:
			s.Out = Partly
			out = append(out, s)
		case s.Out == "":
			s.Out = Waiting
			out = append(out, s)
		default:
			out = append(out, s)
		}
	}
	return append(in, out...)
}

// Wins is how often each candidate that met its needs would win if the trials were repeated, from means drawn from
// their distributions.
func (r *Race) Wins(seed uint64) map[string]float64 {
	const draws = 10_000
	k := r.statistics()
	deviation, freedom := k.deviation, k.freedom
	random := rand.New(rand.NewPCG(seed, 1))
	wins := map[string]float64{}
	var in []Standing
	for _, s := range r.Standings() {
		if s.Out == "" {
			in = append(in, s)
		}
	}
	for range draws {
		d := deviation * math.Sqrt(freedom/stats.DrawChiSquared(freedom, random))
		best, least := "", math.Inf(1)
		for _, s := range in {
			if m := math.Log(s.Score) + random.NormFloat64()*d/math.Sqrt(float64(s.Quiet)); m < least {
				best, least = s.Candidate, m
			}
		}
		if best != "" {
			wins[best] += 1.0 / draws
		}
	}
	return wins
}

// Noise is the deviation of the logarithm of a score between repetitions, pooled over all candidates: 0.1 is about 10
// %.
func (r *Race) Noise() float64 { return r.statistics().deviation }

// MarginError is the half-width of the 95 % interval of the mean of n margins.
func (r *Race) MarginError(n int) float64 { return r.statistics().halfWidth(n) }
