package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
)

// Cell is one planned trial: one combination of the matrix, in one repetition.
type Cell struct {
	// ID counts from 1 in the order of the file: all cells of the first repetition in matrix order (the last axis
	// fastest), then those of the second. It does not depend on the seed.
	ID int `json:"id"`
	// Repetition counts from 1.
	Repetition int `json:"repetition"`
	// Parameters identify the cell: database, workload and scale, and every axis of the matrix under its path. Values
	// are strings, numbers and booleans.
	Parameters map[string]any `json:"parameters"`
	// Axes are the keys of Parameters that vary, in the order of the matrix; without a matrix, database, workload and
	// scale.
	Axes []string `json:"axes"`
	// Seed is the trial's seed; see TrialSeed.
	Seed uint64 `json:"seed"`
	// Experiment is the file with the cell's values applied.
	Experiment Experiment `json:"-"`
}

// Plan returns the trials in the order of execution. Each repetition runs all cells once, in an order that the seed
// determines, so that slow changes of the machine affect all cells alike. Trials that share a cluster are consecutive.
// The same file and seed give the same plan. The caller must not modify it: a copy of 100,000 trials would take a large
// part of a second.
func (e Experiment) Plan() []Cell {
	if e.origin == nil {
		return nil
	}
	return e.origin.cells
}

// trialSeed derives a trial's seed from the experiment's seed and the trial's ID: the ID-th output of SplitMix64
// (Steele, Lea and Flood, 2014) started at seed. Seeds of one experiment never repeat.
func trialSeed(seed uint64, id int) uint64 {
	z := seed + uint64(id)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// expand builds the cells of all repetitions, and their experiment.
func (l *loader) expand(root *strict.Node, axes Matrix) Experiment {
	var cells []Cell
	for i := range countCombinations(axes) {
		if c, ok := l.loadCell(root, axes, i); ok {
			cells = append(cells, c)
		}
	}
	e, ok := l.loadBase(root, axes)
	if !ok || len(l.problems) > 0 {
		return e
	}
	if e.Repetitions*len(cells) > maxTrials {
		l.problems = append(l.problems, strict.Problem{Pos: root.At("repetitions").Pos, Path: "repetitions",
			Message: fmt.Sprintf("repetitions: more than %d trials in total", maxTrials), Hint: "split the experiment"})
		return e
	}
	e.origin.cells = scheduleCells(e, cells)
	return e
}

// loadBase decodes the experiment of the whole run: the file without the matrix or, if that is invalid, with the first
// value of every axis.
func (l *loader) loadBase(root *strict.Node, axes Matrix) (Experiment, bool) {
	alone := &loader{dir: l.dir, fast: l.fast}
	if e, ok := alone.decode(root); ok || len(axes) == 0 {
		l.problems = append(l.problems, alone.problems...)
		return e, ok
	}
	base := root.Clone()
	for _, a := range axes {
		l.addError(strict.Set(base, Experiment{}, a.Path, a.nodes[0].Pos, a.nodes[0]))
	}
	return l.decode(base)
}

func countCombinations(axes Matrix) int {
	n := 1
	for _, a := range axes {
		n *= len(a.nodes)
	}
	return n
}

// loadCell decodes the i-th combination of the axes; the last axis is the fastest.
func (l *loader) loadCell(root *strict.Node, axes Matrix, i int) (Cell, bool) {
	doc := root.Clone()
	chosen, labels := make([]*strict.Node, len(axes)), make([]any, len(axes))
	for k, a := range slices.Backward(axes) {
		chosen[k], labels[k] = a.nodes[i%len(a.nodes)], a.labels()[i%len(a.nodes)]
		i /= len(a.nodes)
	}
	c := Cell{Parameters: map[string]any{}}
	for k, a := range axes {
		if !l.addError(strict.Set(doc, Experiment{}, a.Path, chosen[k].Pos, chosen[k])) {
			return c, false
		}
		c.Axes = append(c.Axes, a.Path)
	}
	var ok bool
	if c.Experiment, ok = l.decode(doc); !ok {
		return c, false
	}
	c.Parameters["database"] = c.Experiment.Database.resultLabel()
	c.Parameters["workload"] = c.Experiment.workloadLabel()
	c.Parameters["scale"] = c.Experiment.Scale
	for k, a := range axes {
		if _, is := c.Parameters[a.Path]; !is || chosen[k].Kind == strict.Map {
			c.Parameters[a.Path] = labels[k]
		}
	}
	if len(axes) == 0 {
		c.Axes = []string{"database", "workload", "scale"}
	}
	return c, true
}

// Label is the workload's name in results.
func (w Workload) Label() string {
	if w.Name != "" {
		return w.Name
	}
	return strings.TrimSuffix(filepath.Base(w.File), filepath.Ext(w.File))
}

// scheduleCells repeats, numbers and shuffles the cells (Fisher and Yates, with the package's own random numbers, so
// that no library can change the order of an old seed).
func scheduleCells(e Experiment, cells []Cell) []Cell {
	plan := make([]Cell, 0, len(cells)*e.Repetitions)
	for r := range e.Repetitions {
		block := slices.Clone(cells)
		for i := range block {
			c := &block[i]
			c.ID, c.Repetition = r*len(cells)+i+1, r+1
			c.Seed = trialSeed(c.Experiment.Seed, c.ID)
		}
		for i := len(block) - 1; i > 0; i-- {
			// These indices are disjoint from trial IDs, which are below maxTrials.
			j := int(trialSeed(e.Seed, (r+1)<<20+i) % uint64(i+1))
			block[i], block[j] = block[j], block[i]
		}
		if e.Reuse {
			groupByCluster(block)
		}
		plan = append(plan, block...)
	}
	return plan
}

// Bringing up eight nodes, forming a cluster and probing the links takes about setupTime. Slow databases load loadRate
// records per second. A member of a database for which reuse or warm-up is worthwhile takes memberTime to start, as
// Cassandra does on two processors.
const (
	setupTime  = 8 * time.Second
	memberTime = 8 * time.Second
	loadRate   = 2000
)

// TrialTime estimates the maximum time of one trial without FormationTime. It returns false if only the number of
// operations ends the trial.
func (e Experiment) TrialTime() (time.Duration, bool) {
	if e.Stop.Time == 0 {
		return 0, false
	}
	load := time.Duration(e.Pools()[0].Workload.Records) * time.Second / loadRate // all pools have one table
	return setupTime + load + e.Warmup.Duration() + e.Stop.Time.Duration(), true
}

// FormationTime estimates the additional time of a trial that forms a cluster instead of reusing one.
func (e Experiment) FormationTime() time.Duration {
	if !e.Reuse && e.ClusterWarmup == 0 {
		return 0
	}
	return memberTime*time.Duration(len(e.DataNodes())) + e.ClusterWarmup.Duration()
}

// Estimate estimates the maximum time of the plan, run sequentially, and whether it is known.
func (e Experiment) Estimate() (time.Duration, bool) {
	var sum time.Duration
	current := "" // cluster key of the running cluster
	for _, c := range e.Plan() {
		lasts, known := c.Experiment.TrialTime()
		if !known {
			return 0, false
		}
		if key := c.Experiment.ClusterKey(); key == "" || key != current {
			current = key
			sum += c.Experiment.FormationTime()
		}
		sum += lasts
	}
	return sum, true
}

func roundEstimate(d time.Duration) unit.Duration {
	switch {
	case d > 2*time.Hour:
		d = d.Round(10 * time.Minute)
	case d > 5*time.Minute:
		d = d.Round(time.Minute)
	default:
		d = d.Round(5 * time.Second)
	}
	return unit.Duration(d)
}

// Values of Experiment.Spread; the default is trial.
const (
	SpreadRepetition = "repetition"
	SpreadCell       = "cell"
)

// ClusterKey identifies the lab and the cluster of a trial: trials with the same key can share them, one after another.
// It is "" if every trial has its own cluster. Computing it takes milliseconds for clouds of hundreds of nodes.
func (e Experiment) ClusterKey() string {
	if !e.Reuse || e.origin == nil {
		return ""
	}
	text, err := json.Marshal([]any{e.origin.cloud, e.Database, e.Engine, e.SetupScale, e.ClusterWarmup, e.Links})
	if err != nil { // a resolved experiment is plain data
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// groupByCluster makes the cells of one cluster key consecutive, at the position of the first one.
func groupByCluster(cells []Cell) {
	first := map[string]int{}
	place := map[int]int{}
	for i, c := range cells {
		key := c.Experiment.ClusterKey()
		if _, ok := first[key]; !ok {
			first[key] = i
		}
		place[c.ID] = first[key]
	}
	slices.SortStableFunc(cells, func(a, b Cell) int { return place[a.ID] - place[b.ID] })
}

// checkReuse refuses experiments whose trials would change a shared cluster for later trials.
func (c *checker) checkReuse() {
	if !c.e.Reuse {
		return
	}
	if len(c.e.Events) > 0 {
		c.fail("reuse", "remove reuse", "events would change the cluster for the next trial")
	}
	for _, n := range c.e.origin.cloud.Nodes {
		if n.Flavor != nil && n.Flavor.Governed() {
			c.fail("reuse", "remove reuse", "the CPU credits of %s would carry over to the next trial", n.Name)
			return
		}
	}
}

// Parallel is the number of concurrent trials; Auto is the number for which this machine has resources.
type Parallel int

const Auto Parallel = -1

// MaxParallel bounds explicit values.
const MaxParallel = 64

func (p *Parallel) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*p = Auto
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > MaxParallel {
		return fmt.Errorf("want auto, or a number from 1 to %d, not %q", MaxParallel, text)
	}
	*p = Parallel(n)
	return nil
}

func (p Parallel) MarshalText() ([]byte, error) {
	if p == Auto {
		return []byte("auto"), nil
	}
	return []byte(strconv.Itoa(int(p))), nil
}
