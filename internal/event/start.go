package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var startKind = Kind{
	Name: "start", Says: "starts what kill and stop have ended.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true},
	Docs:   Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Says: `the processes that kill or stop has ended start again`}}},
	spec:   func() spec { return new(start) },
}

// start starts what kill and stop have ended.
type start struct {
	Nodes `yaml:",inline"`
}

func (e *start) check(s Stage, fail failure) { e.members(s, fail, "started") }

func (e *start) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{nodes: e.Nodes.draw(s, turn, busy, r), text: "%s started", do: reviving})
}

func (*start) need(c databaseCheck, _ Event, fail failure) { c.restarts(fail) }
