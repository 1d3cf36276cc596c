// Package compare sets two cells side by side, of one run or of two, so that a difference can
// be told from noise: every metric over independent repetitions, never over the seconds of one.
package compare

import (
	"fmt"
	"slices"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// Schema versions the JSON of a Report.
const Schema = "skerry/compare/v1"

// Report is every pair of cells that was compared.
type Report struct {
	Schema string `json:"schema"`
	// Seed of the permutation tests.
	Seed  uint64 `json:"seed"`
	Pairs []Pair `json:"pairs"`
	// Notes tell what was left out.
	Notes []string `json:"notes,omitempty"`
}

// Pair is two cells, A and B.
type Pair struct {
	A       Side     `json:"a"`
	B       Side     `json:"b"`
	Metrics []Metric `json:"metrics"`
	// Censored tells of figures that some repetitions know to be at least so much, and no more.
	Censored []string `json:"censored,omitempty"`
	// Links are those of both sides, where some are real on either.
	Links []LinkPair `json:"links,omitempty"`
	// CPU of the data nodes; nil where either side recorded none.
	CPU *CPU `json:"cpu,omitempty"`
}

// Metric is one figure of both sides.
type Metric struct {
	Name string      `json:"name"`
	Unit metric.Unit `json:"unit"`
	// Leading are those that tables show unless all are asked for; SameAs is the metric that has
	// the same values under another name, which stands for both.
	Leading bool    `json:"leading,omitempty"`
	SameAs  string  `json:"same_as,omitempty"`
	A       Figures `json:"a"`
	B       Figures `json:"b"`
	// Change is B's mean over A's, less 1; nil where A's is 0.
	Change *float64 `json:"change,omitempty"`
	// Difference is B's mean less A's, with the half-width of its 95 % interval (Welch);
	// nil where either side has one repetition.
	Difference     float64  `json:"difference"`
	DifferenceCI95 *float64 `json:"difference_ci95,omitempty"`
	// HedgesG has the small-sample correction, GUncorrected is the documents' form:
	// (B - A) / sqrt((SD_A^2 + SD_B^2) / 2).
	HedgesG      *float64 `json:"hedges_g,omitempty"`
	GUncorrected *float64 `json:"g_uncorrected,omitempty"`
	// P is the permutation test's; Exact says that all deals were looked at.
	P     *float64 `json:"p,omitempty"`
	Exact bool     `json:"p_exact,omitempty"`
	// LeastP is the smallest that so many repetitions can give.
	LeastP float64 `json:"least_p,omitempty"`
	// Sentence says it in words.
	Sentence string `json:"sentence"`
}

// Figures are one side of a metric, over its repetitions.
type Figures struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	// SD and Variance are nil for one repetition.
	SD       *float64 `json:"sd,omitempty"`
	Variance *float64 `json:"variance,omitempty"`
	// CI95 is the half-width of the 95 % interval of the mean; nil for one repetition.
	CI95   *float64  `json:"ci95,omitempty"`
	Values []float64 `json:"values"`
}

// pairUp compares two sides.
func pairUp(a, b Side, seed uint64) Pair {
	p := Pair{A: a, B: b}
	va, vb := a.metrics(), b.metrics()
	for _, name := range va.order {
		if _, both := vb.values[name]; both {
			p.Metrics = append(p.Metrics, Compare(name, va.units[name], va.values[name], vb.values[name], seed))
		}
	}
	p.same()
	p.censored(va.beyond, vb.beyond)
	p.Links = linksOf(a, b)
	p.CPU = cpuOf(a, b)
	return p
}

// Compare compares one metric's repetitions.
func Compare(name string, unit metric.Unit, a, b []float64, seed uint64) Metric {
	ea, eb := stats.Of(a), stats.Of(b)
	m := Metric{Name: name, Unit: unit, Leading: leads(name), A: figures(ea, a), B: figures(eb, b), Difference: eb.Mean - ea.Mean}
	if ea.Mean != 0 {
		m.Change = pointer(eb.Mean/ea.Mean - 1)
	}
	if d := stats.Difference(ea, eb); d.HasInterval() {
		m.DifferenceCI95 = pointer(d.HalfWidth)
	}
	e := stats.EffectOf(ea, eb)
	if e.OK {
		m.GUncorrected = pointer(e.Uncorrected)
	}
	if e.HasHedges {
		m.HedgesG = pointer(e.Hedges)
	}
	if t := stats.PermutationTest(a, b, seed); t.OK {
		m.P, m.Exact, m.LeastP = pointer(t.P), t.Exact, leastP(len(a), len(b), t)
	}
	m.Sentence = m.sentence()
	return m
}

func figures(e stats.Estimate, values []float64) Figures {
	f := Figures{N: e.N, Mean: e.Mean, Values: values}
	if e.N > 1 {
		f.SD, f.Variance = pointer(e.SD), pointer(e.SD*e.SD)
	}
	if e.HasInterval() {
		f.CI95 = pointer(e.HalfWidth)
	}
	return f
}

// leastP is what the test gives when both groups are apart entirely: as they are, and where
// they are of one size, the other way round.
func leastP(a, b int, t stats.Permutation) float64 {
	if !t.Exact {
		return 1 / float64(t.Deals+1)
	}
	if a == b {
		return 2 / float64(t.Deals)
	}
	return 1 / float64(t.Deals)
}

func pointer(v float64) *float64 { return &v }

// collected are a side's metrics, each with a value for every repetition that has it.
type collected struct {
	order  []string
	units  map[string]metric.Unit
	values map[string][]float64
	beyond map[string]int // repetitions that know no more than a bound
}

func (s Side) metrics() collected {
	c := collected{units: map[string]metric.Unit{}, values: map[string][]float64{}, beyond: map[string]int{}}
	add := func(name string, unit metric.Unit, v float64) {
		if _, known := c.units[name]; !known {
			c.order, c.units[name] = append(c.order, name), unit
		}
		c.values[name] = append(c.values[name], v)
	}
	for _, t := range s.trials {
		// Of several events of one name the mean: a repetition is one value.
		sums, counts, beyond := map[string]float64{}, map[string]float64{}, map[string]bool{}
		var order []metric.Value
		for _, v := range metric.Of(t) {
			if counts[v.Name] == 0 {
				order = append(order, v)
			}
			sums[v.Name] += v.V
			counts[v.Name]++
			beyond[v.Name] = beyond[v.Name] || v.Beyond
		}
		for _, v := range order {
			if beyond[v.Name] { // a bound is no value
				c.beyond[v.Name]++
				continue
			}
			add(v.Name, v.Unit, sums[v.Name]/counts[v.Name])
		}
		if use, ok := s.meanCPU(t); ok {
			add("cpu.data", s.cpuUnit(), use)
		}
	}
	return c
}

// sameParameters finds the cell of other whose parameters are those of s.
func (s Side) sameParameters(others []Side) (Side, bool) {
	i := slices.IndexFunc(others, func(o Side) bool { return say(o.Parameters) == say(s.Parameters) })
	if i < 0 {
		return Side{}, false
	}
	return others[i], true
}

// Runs compares what two arguments name: RUN, or RUN:CELL, or RUN:NAME=VALUE[,NAME=VALUE].
// Where both are runs of several cells, those with the same parameters are compared. One
// argument alone is a run of two cells.
func Runs(args []string, seed uint64) (Report, error) {
	r, err := runs(args, seed)
	r.machines()
	r.settings()
	return r, err
}

func runs(args []string, seed uint64) (Report, error) {
	r := Report{Schema: Schema, Seed: seed}
	sides := make([][]Side, len(args))
	for i, arg := range args {
		var err error
		if sides[i], err = open(arg); err != nil {
			return r, err
		}
	}
	if len(sides) == 1 {
		if len(sides[0]) != 2 {
			return r, fmt.Errorf("%w: %s has %d; name two: %s:1 %s:2", ErrCells, args[0], len(sides[0]), args[0], args[0])
		}
		sides = [][]Side{sides[0][:1], sides[0][1:]}
	}
	if len(sides[0]) == 1 && len(sides[1]) == 1 {
		r.Pairs = []Pair{pairUp(sides[0][0], sides[1][0], seed)}
		return r, nil
	}
	for _, a := range sides[0] {
		b, ok := a.sameParameters(sides[1])
		if !ok {
			r.Notes = append(r.Notes, fmt.Sprintf("%s has no cell with %s", args[len(args)-1], say(a.Parameters)))
			continue
		}
		r.Pairs = append(r.Pairs, pairUp(a, b, seed))
	}
	if len(r.Pairs) == 0 {
		return r, fmt.Errorf("%w: no cell of %s has the parameters of one of %s; name two cells, such as %s:1 %s:1", ErrCells, args[0], args[1], args[0], args[1])
	}
	return r, nil
}

// usable keeps the trials that figures are made of: the valid ones, or where none is, the
// suspect ones, which is told.
func usable(trials []record.Trial) (used []record.Trial, weak bool) {
	for _, t := range trials {
		if t.State == record.TrialOK && t.Verdict.State == record.Valid {
			used = append(used, t)
		}
	}
	if used != nil {
		return used, false
	}
	for _, t := range trials {
		if t.State == record.TrialOK {
			used = append(used, t)
		}
	}
	return used, used != nil
}
