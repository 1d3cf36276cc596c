package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var killKind = Kind{
	Name: "kill", Summary: "ends the database's processes on nodes with SIGKILL; they stay members. Reverted, they are started again on the same data.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs: Docs{SectionNodes, []Row{{Examples: []string{`Seoul`, `{nodes: data, choose: random}`},
		Text: `the database's processes end with SIGKILL. Taken back, they start again on the same data`}}},
	Offers: []Offer{
		{ID: "kill", Title: "Kill the database", On: record.OnNodes, Targets: "nodes"},
	},
	HeldState: "down",
	newSpec:   func() kindSpec { return new(kill) },
}

// kill ends the database's processes on nodes with SIGKILL.
type kill struct {
	NodeSelector `yaml:",inline"`
}

func (k *kill) check(s Layout, fail failure) { k.checkMembers(s, fail, "killed") }

func (k *kill) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: k.NodeSelector.draw(s, turn, busy, r), text: "%s killed", do: haltNode(abrupt), undo: reviveNode})
}

func (*kill) checkDatabase(c databaseCheck, e Event, fail failure) {
	c.requireRestartIfReverted(e, fail)
}
