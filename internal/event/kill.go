package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var killKind = Kind{
	Name: "kill", Says: "ends the database's processes on nodes with SIGKILL; they stay members. Reverted, they are started again on the same data.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs: Docs{SectionNodes, []Row{{Examples: []string{`Seoul`, `{nodes: data, choose: random}`},
		Says: `the database's processes end with SIGKILL. Taken back, they start again on the same data`}}},
	Offers: []Offer{
		{ID: "kill", Title: "Kill the database", On: record.OnNodes, Targets: "nodes"},
	},
	Still: "down",
	spec:  func() spec { return new(kill) },
}

// kill ends the database's processes on nodes with SIGKILL.
type kill struct {
	Nodes `yaml:",inline"`
}

func (k *kill) check(s Stage, fail failure) { k.members(s, fail, "killed") }

func (k *kill) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{nodes: k.Nodes.draw(s, turn, busy, r), text: "%s killed", do: halting(abrupt), undo: reviving})
}

func (*kill) need(c databaseCheck, e Event, fail failure) { c.restartedLater(e, fail) }
