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
	// ID is from 1 in the order of the file: all cells of the first repetition in matrix
	// order (the last axis fastest), then those of the second. It does not change with the seed.
	ID int `json:"id"`
	// Repetition is from 1.
	Repetition int `json:"repetition"`
	// Parameters are what tells this cell from others: database, workload and scale
	// always, and every axis of the matrix under its path. Values are strings, numbers, booleans.
	Parameters map[string]any `json:"parameters"`
	// Axes are the keys of Parameters that vary, in the order of the matrix; where none
	// does, database, workload and scale.
	Axes []string `json:"axes"`
	// Seed of everything random in this trial: see TrialSeed.
	Seed uint64 `json:"seed"`
	// Experiment is what this trial runs: the file with the cell's values put in.
	Experiment Experiment `json:"-"`
}

// Plan returns the trials in the order of running: repetition by repetition, each with
// all cells in an order of its own that the seed decides, so that whatever changes slowly
// on the machine falls on all cells alike. Where trials reuse clusters, those of one cluster
// follow each other. It is the same for the same file and seed, and not the caller's to change: a copy of 100,000
// trials takes a good part of a second.
func (e Experiment) Plan() []Cell {
	if e.origin == nil {
		return nil
	}
	return e.origin.cells
}

// TrialSeed derives a trial's seed from the experiment's and the trial's ID: the ID-th
// output of SplitMix64 (Steele, Lea and Flood, 2014) started at seed. Seeds of one
// experiment never repeat.
func TrialSeed(seed uint64, id int) uint64 {
	z := seed + uint64(id)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// expand makes the cells of all repetitions and the experiment that they belong to.
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
		l.problems = append(l.problems, strict.Problem{Pos: root.At("repetitions").Pos, Path: "repetitions", Message: fmt.Sprintf("repetitions: more than %d trials in all", maxTrials), Hint: "split the experiment"})
		return e
	}
	e.origin.cells = scheduleCells(e, cells)
	return e
}

// loadBase is the experiment of the whole run: what the file says outside the matrix, or where
// that is no experiment without it, with the first value of every axis.
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

// loadCell makes the i-th combination of the axes; the last axis is the fastest.
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
	c.Parameters["database"] = ShortLabel(c.Experiment.Database.Key())
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

// Label is how results call the workload.
func (w Workload) Label() string {
	if w.Name != "" {
		return w.Name
	}
	return strings.TrimSuffix(filepath.Base(w.File), filepath.Ext(w.File))
}

// scheduleCells repeats the cells, numbers them and shuffles each repetition (Fisher and Yates,
// with numbers of its own so that no library can change the order of an old seed).
func scheduleCells(e Experiment, cells []Cell) []Cell {
	plan := make([]Cell, 0, len(cells)*e.Repetitions)
	for r := range e.Repetitions {
		block := slices.Clone(cells)
		for i := range block {
			c := &block[i]
			c.ID, c.Repetition = r*len(cells)+i+1, r+1
			c.Seed = TrialSeed(c.Experiment.Seed, c.ID)
		}
		for i := len(block) - 1; i > 0; i-- {
			// Apart from the trials' seeds, whose IDs are below maxTrials.
			j := int(TrialSeed(e.Seed, (r+1)<<20+i) % uint64(i+1))
			block[i], block[j] = block[j], block[i]
		}
		if e.Reuse {
			groupByCluster(block)
		}
		plan = append(plan, block...)
	}
	return plan
}

// Before a trial measures, bringing up eight nodes, forming a cluster and probing the links takes about setupTime, and
// its records are loaded, loadRate of them a second by the slower databases. Databases whose clusters are worth
// sharing or warming up are slow to start: each member takes memberTime more, as Cassandra's do on two processors.
const (
	setupTime  = 8 * time.Second
	memberTime = 8 * time.Second
	loadRate   = 2000
)

// TrialTime is the longest that one trial is likely to take, without what Forming says, and whether that is known: where
// only the number of operations ends it it depends on the database.
func (e Experiment) TrialTime() (time.Duration, bool) {
	if e.Stop.Time == 0 {
		return 0, false
	}
	load := time.Duration(e.Pools()[0].Workload.Records) * time.Second / loadRate // all pools have one table
	return setupTime + load + e.Warmup.Duration() + e.Stop.Time.Duration(), true
}

// FormationTime is how much longer a trial is likely to take that forms a cluster, and does not reuse an earlier trial's.
func (e Experiment) FormationTime() time.Duration {
	if !e.Reuse && e.ClusterWarmup == 0 {
		return 0
	}
	return memberTime*time.Duration(len(e.DataNodes())) + e.ClusterWarmup.Duration()
}

// Estimate is the longest that the plan is likely to take, one trial after another, and whether that is known.
func (e Experiment) Estimate() (time.Duration, bool) {
	var sum time.Duration
	on := "" // the footing of the cluster that there is
	for _, c := range e.Plan() {
		lasts, known := c.Experiment.TrialTime()
		if !known {
			return 0, false
		}
		if footing := c.Experiment.ClusterKey(); footing == "" || footing != on {
			on = footing
			sum += c.Experiment.FormationTime()
		}
		sum += lasts
	}
	return sum, true
}

// roundEstimate rounds a time to what is worth saying.
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

// What Experiment.Spread may be; the default is trial.
const (
	SpreadRepetition = "repetition"
	SpreadCell       = "cell"
)

// ClusterKey names the lab and the cluster that a trial runs on: trials with the same one can
// run on the same, one after another. It is "" where every trial has its own. Clouds of hundreds of nodes take
// milliseconds: who asks for many trials again and again should keep the answers.
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

// groupByCluster puts the cells of one footing beside each other, where the first of them stands.
func groupByCluster(cells []Cell) {
	first := map[string]int{}
	place := map[int]int{}
	for i, c := range cells {
		footing := c.Experiment.ClusterKey()
		if _, ok := first[footing]; !ok {
			first[footing] = i
		}
		place[c.ID] = first[footing]
	}
	slices.SortStableFunc(cells, func(a, b Cell) int { return place[a.ID] - place[b.ID] })
}

// checkReuse refuses what would be handed on from one trial to the next.
func (c *checker) checkReuse() {
	if !c.e.Reuse {
		return
	}
	if len(c.e.Events) > 0 {
		c.fail("reuse", "leave reuse out", "the next trial would run on what events have made of the cluster")
	}
	for _, n := range c.e.origin.cloud.Nodes {
		if n.Flavor != nil && n.Flavor.Governed() {
			c.fail("reuse", "leave reuse out", "%s", fmt.Sprintf("the processor credits of %s, which setting up must not cost, would be handed on", n.Name))
			return
		}
	}
}

// Parallel is how many trials may run at the same time; Auto is as many as this machine has room for.
type Parallel int

// Auto stands for as many as there is room for.
const Auto Parallel = -1

// MaxParallel bounds every other value.
const MaxParallel = 64

// UnmarshalText implements encoding.TextUnmarshaler.
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

// MarshalText implements encoding.TextMarshaler.
func (p Parallel) MarshalText() ([]byte, error) {
	if p == Auto {
		return []byte("auto"), nil
	}
	return []byte(strconv.Itoa(int(p))), nil
}
