package event

import (
	"context"
	"math/rand/v2"
	"slices"

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

var joinKind = Kind{
	Name: "join", Summary: "makes nodes members. Reverted, they leave.",
	Effect:    record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true, Member: record.Joins},
	Docs:      Docs{SectionMembership, []Row{{Examples: []string{`spare`}, Text: `the node joins. Taken back, it leaves`}}},
	HeldState: "members",
	newSpec:   func() kindSpec { return new(join) },
}

// join makes nodes members, one after the other.
type join struct {
	NodeSelector `yaml:",inline"`
}

func (e *join) check(s Layout, fail failure) { e.checkMembers(s, fail, "added") }

func (e *join) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{
		nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s joins", do: joinNode,
		undo: func(ctx context.Context, w *Testbed, node string, p *progress) error {
			return w.leave(ctx, node, database.Graceful, p)
		},
	})
}

func joinNode(ctx context.Context, w *Testbed, node string, p *progress) error {
	return w.join(ctx, node, p)
}

func (e *join) joiningNodes(s Layout) []string {
	nodes, _ := s.resolveNames(e.NodeSelector.Nodes)
	return nodes
}

// need: the database takes members in while it serves, so many, and these are none yet.
func (e *join) checkDatabase(c databaseCheck, _ Event, fail failure) {
	if !c.can.Resize {
		fail("", "give the experiment more nodes from the start", "%s cannot take in members while it serves", c.name)
		return
	}
	for _, n := range e.joiningNodes(c.stage) {
		if slices.Contains(c.stage.Data, n) && !c.hasLeave(n) {
			fail("nodes", "leave nodes of the topology out of database.nodes or database.count, and name those", "%s is a member from the start, and no event lets it leave", n)
			return
		}
	}
	if most := c.can.MaxNodes; most > 0 && len(c.stage.Data)+c.joiningCount() > most {
		fail("nodes", "", "%s forms clusters of %d nodes at most", c.name, most)
	}
}
