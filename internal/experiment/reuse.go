package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

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

// gather puts the cells of one footing beside each other, where the first of them stands.
func gather(cells []Cell) {
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

// reuse refuses what would be handed on from one trial to the next.
func (c *checker) reuse() {
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
