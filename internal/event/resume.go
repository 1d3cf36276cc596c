package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var resumeKind = Kind{
	Name: "resume", Says: "lets the processes of nodes go on (SIGCONT), whatever paused them.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true},
	Docs:   Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Says: `every process of the node goes on (SIGCONT), whatever paused it`}}},
	spec:   func() spec { return new(resume) },
}

// resume lets the processes of nodes go on.
type resume struct {
	Nodes `yaml:",inline"`
}

func (e *resume) check(s Stage, fail failure) { e.resolve(s, fail) }

func (e *resume) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{nodes: e.Nodes.draw(s, turn, busy, r), text: "%s resumed", do: resuming})
}
