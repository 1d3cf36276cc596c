package event

import (
	"context"
	"math/rand/v2"

	"skerry/internal/database"
	"skerry/internal/record"
)

var leaveKind = Kind{
	Name: "leave", Says: "ends the membership of nodes by the database's own procedure. Reverted, they join.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down, Settles: true, Member: record.Leaves},
	Docs: Docs{SectionMembership, []Row{{Examples: []string{`Seoul`, `{nodes: removable, choose: next}`, `{nodes: Seoul, manner: abrupt}`},
		Says: `the node leaves by the database's own procedure. Taken back, it joins`}}},
	Still: "away",
	spec:  func() spec { return new(Leave) },
}

// Leave ends the membership of nodes, one after the other, by the database's own
// procedure. It is over when the database says so; without for it is a change for good,
// which the end of the trial does not take back.
type Leave struct {
	Nodes `yaml:",inline"`
	// Manner is how they go: graceful, or abrupt: killed first, and then removed by the
	// procedure for members that were lost.
	Manner string `yaml:"manner" json:"manner" jsonschema:"default=graceful,enum=graceful,enum=abrupt"`
}

func (e *Leave) check(s Stage, fail failure) { e.Nodes.members(s, fail, "removed") }

func (e *Leave) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	manner, text := mannerOf(e.Manner), "%s leaves"
	if manner == database.Abrupt {
		text = "%s is lost and removed"
	}
	return newOnNodes(onNodes{
		nodes: e.Nodes.draw(s, turn, busy, r), text: text, undo: joining,
		do: func(ctx context.Context, w *World, node string, p *progress) error {
			return w.leave(ctx, node, manner, p)
		},
	})
}

func (e *Leave) leaving(s Stage) []string {
	nodes, _ := s.nodes(e.Nodes.Nodes)
	return nodes
}

// need: members can leave while the database serves, these can, and enough are left.
func (e *Leave) need(c databaseCheck, entry Event, fail failure) {
	if !c.can.Resize {
		fail("", "kill nodes, or cut their links", "%s cannot let members leave while it serves", c.name)
		return
	}
	const gracefully = "write manner: graceful, or kill nodes and leave them members"
	if mannerOf(e.Manner) == database.Abrupt {
		switch {
		case !c.can.LeaveAbrupt:
			fail("manner", gracefully, "%s has no procedure for members that were lost", c.name)
			return
		case c.stage.Frail != "":
			fail("manner", gracefully, "no node can leave abruptly: %s", c.stage.Frail)
			return
		}
	}
	nodes := e.leaving(c.stage)
	for _, n := range nodes {
		if why := c.stage.Fixed[n]; why != "" {
			fail("nodes", "name others, or write nodes: removable", "%s cannot leave: %s", n, why)
			return
		}
	}
	if len(nodes) == 0 { // removable, where none is
		fail("nodes", "start with more nodes", "none of the %d nodes can leave: %s", len(c.stage.Data), c.stage.Fixed[c.stage.Data[0]])
		return
	}
	away := len(nodes)
	if e.Choose != "all" && (entry.Gap != nil && entry.ends() || !entry.repeats()) {
		away = min(away, e.Count)
	}
	if left := len(c.stage.Data) - away + c.joined(); e.Choose != "random" && left < c.can.MinNodes {
		fail("nodes", "let fewer leave", "%s needs at least %d nodes: of %d, %d would be left", c.name, c.can.MinNodes, len(c.stage.Data), left)
	}
}
