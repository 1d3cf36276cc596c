package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var startKind = Kind{
	Name: "start", Summary: "starts what kill and stop have ended.",
	Effect:  record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true},
	Docs:    Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Text: `the processes that kill or stop has ended start again`}}},
	newSpec: func() kindSpec { return new(start) },
}

// start starts what kill and stop have ended.
type start struct {
	NodeSelector `yaml:",inline"`
}

func (e *start) check(s Layout, fail failure) { e.checkMembers(s, fail, "started") }

func (e *start) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s started", do: reviveNode})
}

func (*start) checkDatabase(c databaseCheck, _ Event, fail failure) { c.requireRestart(fail) }
