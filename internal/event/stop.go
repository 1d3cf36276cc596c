package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var stopKind = Kind{
	Name: "stop", Says: "ends the database's processes on nodes in its own way; reverted as kill is.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs:   Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Says: `the database's processes end in the database's own way: drained, flushed, SIGTERM`}}},
	Still:  "down",
	spec:   func() spec { return new(stop) },
}

// stop ends the database's processes on nodes in the database's own way.
type stop struct {
	Nodes `yaml:",inline"`
}

func (e *stop) check(s Stage, fail failure) { e.members(s, fail, "stopped") }

func (e *stop) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{nodes: e.Nodes.draw(s, turn, busy, r), text: "%s stopped", do: halting(graceful), undo: reviving})
}

func (*stop) need(c databaseCheck, e Event, fail failure) { c.restartedLater(e, fail) }
