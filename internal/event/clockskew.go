package event

import (
	"math/rand/v2"

	"skerry/internal/base/unit"
	"skerry/internal/record"
)

var clockSkewKind = Kind{
	Name: "clock_skew", Summary: "sets the clocks of nodes wrong.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{
		Text: `unavailable. Linux gives the processes of a node no time of day of their own: time namespaces shift the monotonic clocks alone. Skerry does ` +
			`not touch the machine's clock`}}},
	newSpec: func() kindSpec { return new(ClockSkew) },
}

// ClockSkew sets the clocks of nodes wrong. It is unavailable: the kernel gives processes
// no time of day of their own (time namespaces shift only the monotonic clocks), and the
// machine's is not to be touched. The key stands here so that who looks for it is told.
type ClockSkew struct {
	NodeSelector `yaml:",inline"`
	// By is how far their clocks are off.
	By unit.Duration `yaml:"by" json:"by"`
}

func (c *ClockSkew) check(_ Layout, fail failure) {
	fail("", "skew the clocks of real machines; latency and pause delay what nodes hear of each other",
		"%v: Linux gives the processes of a node no time of day of their own (time namespaces shift the monotonic clocks alone)", ErrUnavailable)
}

func (c *ClockSkew) draw(Layout, int, map[string]bool, *rand.Rand) action { return nil }
