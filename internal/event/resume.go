package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var resumeKind = Kind{
	Name: "resume", Summary: "lets the processes of nodes go on (SIGCONT), whatever paused them.",
	Effect:  record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true},
	Docs:    Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Text: `every process of the node goes on (SIGCONT), whatever paused it`}}},
	newSpec: func() kindSpec { return new(resume) },
}

// resume lets the processes of nodes go on.
type resume struct {
	NodeSelector `yaml:",inline"`
}

func (e *resume) check(s Layout, fail failure) { e.resolve(s, fail) }

func (e *resume) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s resumed", do: resumeNode})
}
