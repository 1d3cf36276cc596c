package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var stopKind = Kind{
	Name: "stop", Summary: "ends the database's processes on nodes in its own way; reverted as kill is.",
	Effect:    record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs:      Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Text: `the database's processes end in the database's own way: drained, flushed, SIGTERM`}}},
	HeldState: "down",
	newSpec:   func() kindSpec { return new(stop) },
}

// stop ends the database's processes on nodes in the database's own way.
type stop struct {
	NodeSelector `yaml:",inline"`
}

func (e *stop) check(s Layout, fail failure) { e.checkMembers(s, fail, "stopped") }

func (e *stop) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s stopped", do: haltNode(graceful), undo: reviveNode})
}

func (*stop) checkDatabase(c databaseCheck, e Event, fail failure) {
	c.requireRestartIfReverted(e, fail)
}
