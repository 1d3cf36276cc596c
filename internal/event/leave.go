package event

import (
	"context"
	"math/rand/v2"

	"skerry/internal/database"
	"skerry/internal/record"
)

var leaveKind = Kind{
	Name: "leave", Summary: "ends the membership of nodes by the database's own procedure. Reverted, they join.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down, Settles: true, Member: record.Leaves},
	Docs: Docs{SectionMembership, []Row{{Examples: []string{`Seoul`, `{nodes: removable, choose: next}`, `{nodes: Seoul, manner: abrupt}`},
		Text: `the node leaves by the database's own procedure. Taken back, it joins`}}},
	HeldState: "away",
	newSpec:   func() kindSpec { return new(Leave) },
}

// Leave ends the membership of nodes, one after the other, by the database's own
// procedure. It is over when the database says so; without for it is a change for good,
// which the end of the trial does not take back.
type Leave struct {
	NodeSelector `yaml:",inline"`
	// Manner is how they go: graceful, or abrupt: killed first, and then removed by the
	// procedure for members that were lost.
	Manner string `yaml:"manner" json:"manner" jsonschema:"default=graceful,enum=graceful,enum=abrupt"`
}

func (e *Leave) check(s Layout, fail failure) { e.NodeSelector.checkMembers(s, fail, "removed") }

func (e *Leave) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	manner, text := parseManner(e.Manner), "%s leaves"
	if manner == database.Abrupt {
		text = "%s is lost and removed"
	}
	return newNodeAction(nodeAction{
		nodes: e.NodeSelector.draw(s, turn, busy, r), text: text, undo: joinNode,
		do: func(ctx context.Context, w *Testbed, node string, p *progress) error {
			return w.leave(ctx, node, manner, p)
		},
	})
}

func (e *Leave) leavingNodes(s Layout) []string {
	nodes, _ := s.resolveNames(e.NodeSelector.Nodes)
	return nodes
}

// need: members can leave while the database serves, these can, and enough are left.
func (e *Leave) checkDatabase(c databaseCheck, entry Event, fail failure) {
	if !c.can.Resize {
		fail("", "kill nodes, or cut their links", "%s cannot let members leave while it serves", c.name)
		return
	}
	const gracefully = "write manner: graceful, or kill nodes and leave them members"
	if parseManner(e.Manner) == database.Abrupt {
		switch {
		case !c.can.LeaveAbrupt:
			fail("manner", gracefully, "%s has no procedure for members that were lost", c.name)
			return
		case c.stage.NoAbruptLeave != "":
			fail("manner", gracefully, "no node can leave abruptly: %s", c.stage.NoAbruptLeave)
			return
		}
	}
	nodes := e.leavingNodes(c.stage)
	for _, n := range nodes {
		if why := c.stage.Unremovable[n]; why != "" {
			fail("nodes", "name others, or write nodes: removable", "%s cannot leave: %s", n, why)
			return
		}
	}
	if len(nodes) == 0 { // removable, where none is
		fail("nodes", "start with more nodes", "none of the %d nodes can leave: %s", len(c.stage.Data), c.stage.Unremovable[c.stage.Data[0]])
		return
	}
	away := len(nodes)
	if e.Choose != "all" && (entry.Gap != nil && entry.endsEarly() || !entry.repeats()) {
		away = min(away, e.Count)
	}
	if left := len(c.stage.Data) - away + c.joiningCount(); e.Choose != "random" && left < c.can.MinNodes {
		fail("nodes", "let fewer leave", "%s needs at least %d nodes: of %d, %d would be left", c.name, c.can.MinNodes, len(c.stage.Data), left)
	}
}
