package event

import (
	"fmt"
	"math/rand/v2"

	"skerry/internal/record"
)

var cpuKind = Kind{
	Name: "cpu", Summary: "keeps cores of nodes busy, as \"yes > /dev/null\" does.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs:   Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, cores: 2}`}, Text: "processes on the node keep the cores busy, within its quota, as `yes > /dev/null` does"}}},
	Offers: []Offer{
		{ID: "cpu", Title: "Use up CPU", On: record.OnNodes, Targets: "nodes", Amount: &Amount{Key: "cores", Label: "cores", Value: "1", Number: true}},
	},
	newSpec: func() kindSpec { return new(CPU) },
}

// CPU keeps cores of nodes busy by a process of the node: within its quota, at the
// database's own priority.
type CPU struct {
	NodeSelector `yaml:",inline"`
	// Cores is how many of each node; 0.5 is half of one.
	Cores float64 `yaml:"cores" json:"cores" jsonschema:"default=1,exclusiveMinimum=0,maximum=1024"`
}

func (c *CPU) check(s Layout, fail failure) { c.NodeSelector.resolve(s, fail) }

func (c *CPU) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newStressAction(c.NodeSelector.draw(s, turn, busy, r), fmt.Sprintf("%s cores of %%s busy", formatFactor(c.Cores)), "cpu", formatFactor(c.Cores))
}
