package event

import (
	"context"
	"math/rand/v2"
	"slices"

	"skerry/internal/database"
	"skerry/internal/record"
)

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
