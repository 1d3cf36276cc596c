// Package compare compares two cells, of one run or of two, metric by metric. Every test is over
// independent repetitions, never over the seconds of one.
package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/record/metric"
)

// Schema versions the JSON of a Report.
const Schema = "skerry/compare/v1"

// Report holds all compared pairs of cells.
type Report struct {
	Schema string `json:"schema"`
	// Seed is the seed of the permutation tests.
	Seed  uint64 `json:"seed"`
	Pairs []Pair `json:"pairs"`
	// Notes list omitted cells and differences in machines and settings.
	Notes []string `json:"notes,omitempty"`
}

// Pair is a comparison of two cells.
type Pair struct {
	A       Side     `json:"a"`
	B       Side     `json:"b"`
	Metrics []Metric `json:"metrics"`
	// Censored describes metrics for which some repetitions only have a lower bound.
	Censored []string `json:"censored,omitempty"`
	// Links are the links of both sides, empty if all are emulated.
	Links []LinkPair `json:"links,omitempty"`
	// CPU is the CPU usage of data nodes, nil if either side recorded none.
	CPU *CPU `json:"cpu,omitempty"`
}

// Metric is one metric of both sides.
type Metric struct {
	Name string      `json:"name"`
	Unit metric.Unit `json:"unit"`
	// Leading metrics are shown by default. SameAs names a metric with identical values that
	// represents this one.
	Leading bool        `json:"leading,omitempty"`
	SameAs  string      `json:"same_as,omitempty"`
	A       SideFigures `json:"a"`
	B       SideFigures `json:"b"`
	// Change is B's mean divided by A's, minus 1; nil if A's is 0.
	Change *float64 `json:"change,omitempty"`
	// Difference is B's mean minus A's. DifferenceCI95 is the half-width of its 95 % interval
	// (Welch), nil if either side has one repetition.
	Difference     float64  `json:"difference"`
	DifferenceCI95 *float64 `json:"difference_ci95,omitempty"`
	// HedgesG has the small-sample correction. GUncorrected is (B - A) / sqrt((SD_A^2 + SD_B^2) /
	// 2), as in the original papers.
	HedgesG      *float64 `json:"hedges_g,omitempty"`
	GUncorrected *float64 `json:"g_uncorrected,omitempty"`
	// P is the result of the permutation test. Exact is set if all permutations were enumerated.
	P     *float64 `json:"p,omitempty"`
	Exact bool     `json:"p_exact,omitempty"`
	// LeastP is the smallest p value that the number of repetitions allows.
	LeastP float64 `json:"least_p,omitempty"`
	// Sentence describes the result.
	Sentence string `json:"sentence"`
}

// SideFigures are the repetitions of one side.
type SideFigures struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	// SD and Variance are nil for one repetition.
	SD       *float64 `json:"sd,omitempty"`
	Variance *float64 `json:"variance,omitempty"`
	// CI95 is the half-width of the 95 % interval of the mean, nil for one repetition.
	CI95   *float64  `json:"ci95,omitempty"`
	Values []float64 `json:"values"`
}

func comparePair(a, b Side, seed uint64) Pair {
	p := Pair{A: a, B: b}
	va, vb := a.collectMetrics(), b.collectMetrics()
	for _, name := range va.order {
		if _, both := vb.values[name]; both {
			p.Metrics = append(p.Metrics, compareMetric(name, va.units[name], va.values[name], vb.values[name], seed))
		}
	}
	p.markDuplicates()
	p.noteCensored(va.beyond, vb.beyond)
	p.Links = pairLinks(a, b)
	p.CPU = compareCPU(a, b)
	return p
}

func compareMetric(name string, unit metric.Unit, a, b []float64, seed uint64) Metric {
	ea, eb := stats.EstimateMean(a), stats.EstimateMean(b)
	m := Metric{Name: name, Unit: unit, Leading: isLeading(name), A: figures(ea, a), B: figures(eb, b), Difference: eb.Mean - ea.Mean}
	if ea.Mean != 0 {
		m.Change = pointer(eb.Mean/ea.Mean - 1)
	}
	if d := stats.EstimateDifference(ea, eb); d.HasInterval() {
		m.DifferenceCI95 = pointer(d.HalfWidth)
	}
	e := stats.ComputeEffect(ea, eb)
	if e.OK {
		m.GUncorrected = pointer(e.Uncorrected)
	}
	if e.HasHedges {
		m.HedgesG = pointer(e.Hedges)
	}
	if t := stats.PermutationTest(a, b, seed); t.OK {
		m.P, m.Exact, m.LeastP = pointer(t.P), t.Exact, smallestP(len(a), len(b), t)
	}
	m.Sentence = m.describe()
	return m
}

func figures(e stats.Estimate, values []float64) SideFigures {
	f := SideFigures{N: e.N, Mean: e.Mean, Values: values}
	if e.N > 1 {
		f.SD, f.Variance = pointer(e.SD), pointer(e.SD*e.SD)
	}
	if e.HasInterval() {
		f.CI95 = pointer(e.HalfWidth)
	}
	return f
}

// smallestP returns the p value of completely separated groups. With equal sizes, the swapped
// assignment is as extreme.
func smallestP(a, b int, t stats.Permutation) float64 {
	if !t.Exact {
		return 1 / float64(t.Deals+1)
	}
	if a == b {
		return 2 / float64(t.Deals)
	}
	return 1 / float64(t.Deals)
}

func pointer(v float64) *float64 { return &v }

type metricValues struct {
	order  []string
	units  map[string]metric.Unit
	values map[string][]float64
	beyond map[string]int // number of repetitions with a lower bound only
}

func (s Side) collectMetrics() metricValues {
	c := metricValues{units: map[string]metric.Unit{}, values: map[string][]float64{}, beyond: map[string]int{}}
	add := func(name string, unit metric.Unit, v float64) {
		if _, known := c.units[name]; !known {
			c.order, c.units[name] = append(c.order, name), unit
		}
		c.values[name] = append(c.values[name], v)
	}
	for _, t := range s.trials {
		// Events of one name are averaged: a repetition counts as one value.
		sums, counts, beyond := map[string]float64{}, map[string]float64{}, map[string]bool{}
		var order []metric.Value
		for _, v := range metric.Values(t) {
			if counts[v.Name] == 0 {
				order = append(order, v)
			}
			sums[v.Name] += v.V
			counts[v.Name]++
			beyond[v.Name] = beyond[v.Name] || v.LowerBound
		}
		for _, v := range order {
			if beyond[v.Name] { // a bound is not a value
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

func (s Side) findSame(others []Side) (Side, bool) {
	i := slices.IndexFunc(others, func(o Side) bool { return describeParameters(o.Parameters) == describeParameters(s.Parameters) })
	if i < 0 {
		return Side{}, false
	}
	return others[i], true
}

// Runs compares the cells that the arguments name: RUN, RUN:CELL, or RUN:NAME=VALUE[,NAME=VALUE].
// Cells of two runs are matched by parameters. A single argument is a run with two cells.
func Runs(args []string, seed uint64) (Report, error) {
	r, err := runs(args, seed)
	r.noteMachines()
	r.noteSettings()
	return r, err
}

func runs(args []string, seed uint64) (Report, error) {
	r := Report{Schema: Schema, Seed: seed}
	sides := make([][]Side, len(args))
	for i, arg := range args {
		var err error
		if sides[i], err = openSides(arg); err != nil {
			return r, err
		}
	}
	if len(sides) == 1 {
		if len(sides[0]) != 2 {
			return r, fmt.Errorf("%w: %s has %d cells; name two of them: %s:1 %s:2", ErrCells, args[0], len(sides[0]), args[0], args[0])
		}
		sides = [][]Side{sides[0][:1], sides[0][1:]}
	}
	if len(sides[0]) == 1 && len(sides[1]) == 1 {
		r.Pairs = []Pair{comparePair(sides[0][0], sides[1][0], seed)}
		return r, nil
	}
	for _, a := range sides[0] {
		b, ok := a.findSame(sides[1])
		if !ok {
			r.Notes = append(r.Notes, fmt.Sprintf("%s has no cell with %s", args[len(args)-1], describeParameters(a.Parameters)))
			continue
		}
		r.Pairs = append(r.Pairs, comparePair(a, b, seed))
	}
	if len(r.Pairs) == 0 {
		return r, fmt.Errorf("%w: no cell of %s has the parameters of a cell of %s; name two cells, such as %s:1 %s:1", ErrCells, args[0],
			args[1], args[0], args[1])
	}
	return r, nil
}

// markDuplicates sets SameAs of metrics that repeat another one: service time that equals response
// time, throughput that equals goodput, and an event kind that has a single event.
func (p *Pair) markDuplicates() {
	place := map[string]int{}
	for i, m := range p.Metrics {
		place[m.Name] = i
	}
	onlyOf := p.onlyNames()
	for i := range p.Metrics {
		m := &p.Metrics[i]
		other := ""
		switch head, last := cutLast(m.Name); {
		case m.Name == "throughput":
			other = "goodput"
		case strings.HasSuffix(head, ".service"):
			other = strings.TrimSuffix(head, "service") + last
		case strings.HasPrefix(head, "events."):
			if name, ok := onlyOf[strings.TrimPrefix(head, "events.")]; ok {
				other = "events." + name + "." + last
			}
		}
		if at, ok := place[other]; ok && slices.Equal(m.A.Values, p.Metrics[at].A.Values) && slices.Equal(m.B.Values, p.Metrics[at].B.Values) {
			m.SameAs = other
		}
	}
}

func (p *Pair) noteCensored(a, b map[string]int) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	onlyOf := p.onlyNames()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		head, _ := cutLast(name)
		if _, twice := onlyOf[strings.TrimPrefix(head, "events.")]; isLeading(name) && !twice {
			p.Censored = append(p.Censored, fmt.Sprintf("%s lasted longer than the observation in %d of %d trials of A and %d of %d of "+
				"B; their values are left out.",
				name, a[name], len(p.A.trials), b[name], len(p.B.trials)))
		}
	}
}

func cutLast(name string) (head, last string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// onlyNames maps each event kind that has a single event name on both sides, other than the kind,
// to that name.
func (p *Pair) onlyNames() map[string]string {
	names := map[string]map[string]bool{}
	for _, s := range []Side{p.A, p.B} {
		for _, t := range s.trials {
			for _, h := range t.Events {
				if names[h.Kind] == nil {
					names[h.Kind] = map[string]bool{}
				}
				names[h.Kind][h.Name] = true
			}
		}
	}
	out := map[string]string{}
	for kind, called := range names {
		for name := range called {
			if len(called) == 1 && name != kind {
				out[kind] = name
			}
		}
	}
	return out
}

func isLeading(name string) bool {
	switch name {
	case "goodput", "throughput", "availability", "cpu.data", "traffic.total", "lost_writes":
		return true
	}
	head, last := cutLast(name)
	if strings.HasPrefix(head, "events.") {
		return slices.Contains([]string{"recover", "unresponsive", "dip"}, last)
	}
	return last == "mean" || last == "p95" || last == "p99"
}

const minChange = 0.005

// IsNotable reports whether a difference deserves a sentence: the means differ as written, by at
// least half a percent, and by more than a negligible effect size if that is known.
func (m Metric) IsNotable() bool {
	switch {
	case m.Unit.Format(m.A.Mean) == m.Unit.Format(m.B.Mean), m.Change != nil && math.Abs(*m.Change) < minChange:
		return false
	case m.HedgesG != nil:
		return math.Abs(*m.HedgesG) >= negligibleEffect
	}
	return true
}
