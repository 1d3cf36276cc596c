package event

import (
	"context"
	"math/rand/v2"
	"slices"

	"skerry/internal/database"
	"skerry/internal/record"
)

var leaveKind = Kind{
	Name: "leave", Summary: "removes nodes by the database's own procedure. A revert adds them again.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down, Settles: true, Member: record.Leaves},
	Docs: Docs{SectionMembership, []Row{{Examples: []string{`Seoul`, `{nodes: removable, choose: next}`, `{nodes: Seoul, manner: abrupt}`},
		Text: `the node leaves by the database's own procedure. On revert, it joins`}, {Examples: []string{`{count: 1}`},
		Text: "on a [cluster that Skerry did not start](howto/own-cluster.md#4-events): its command `leave`. On revert, `join`"}}},
	HeldState: "away",
	newSpec:   func() kindSpec { return new(Leave) },
}

// Leave removes nodes from the database, one after the other, by the database's own procedure. It
// is complete when the database says so. Without for, the change is permanent: the end of the trial
// does not revert it.
type Leave struct {
	MemberSelector `yaml:",inline"`
	// Manner is how the nodes leave. graceful is the normal procedure. abrupt kills the node first,
	// then removes it by the procedure for lost members.
	Manner string `yaml:"manner" json:"manner" jsonschema:"default=graceful,enum=graceful,enum=abrupt"`
}

func (e *Leave) check(s Layout, fail failure) {
	if s.Cluster != nil {
		requireCommand(fail, "leave", s.Cluster.Leave)
		if parseManner(e.Manner) == database.Abrupt {
			fail("manner", "remove it, or use a command event", "the command leave of database.cluster decides how servers leave")
		}
	}
	e.checkMembers(s, fail, "removed")
}

func (e *Leave) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	if len(e.Nodes) == 0 {
		return &resizeAction{by: -e.Count}
	}
	manner, text := parseManner(e.Manner), "%s leaves"
	if manner == database.Abrupt {
		text = "%s is lost and removed"
	}
	return newNodeAction(nodeAction{
		nodes: e.selectNodes(s, turn, busy, r), text: text, undo: joinNode,
		do: func(ctx context.Context, w *Testbed, node string, p *progress) error {
			return w.leave(ctx, node, manner, p)
		},
	})
}

func (e *Leave) leavingNodes(s Layout) []string {
	nodes, _ := s.resolveNames(e.Nodes)
	return nodes
}

func (e *Leave) checkDatabase(c databaseCheck, entry Event, fail failure) {
	if k := c.stage.Cluster; k != nil {
		if entry.endsEarly() {
			requireCommand(fail, "join", k.Join)
		}
		return
	}
	if !c.can.Resize {
		fail("", "kill nodes, or cut their links", "%s cannot remove members while it serves", c.name)
		return
	}
	const gracefully = "write manner: graceful, or kill nodes and keep them as members"
	if parseManner(e.Manner) == database.Abrupt {
		switch {
		case !c.can.LeaveAbrupt:
			fail("manner", gracefully, "%s has no procedure for lost members", c.name)
			return
		case c.stage.NoAbruptLeave != "":
			fail("manner", gracefully, "no node can leave abruptly: %s", c.stage.NoAbruptLeave)
			return
		}
	}
	nodes := e.leavingNodes(c.stage)
	for _, n := range nodes {
		if why := c.stage.Unremovable[n]; why != "" {
			fail("nodes", "name other nodes, or write nodes: removable", "%s cannot leave: %s", n, why)
			return
		}
	}
	if len(nodes) == 0 { // removable matches no node
		fail("nodes", "start with more nodes", "none of the %d nodes can leave: %s", len(c.stage.Data), c.stage.Unremovable[c.stage.Data[0]])
		return
	}
	away := len(nodes)
	if e.Choose != "all" && (entry.Gap != nil && entry.endsEarly() || !entry.repeats()) {
		away = min(away, e.Count)
	}
	if left := len(c.stage.Data) - away + c.joiningCount(); e.Choose != "random" && left < c.can.MinNodes {
		fail("nodes", "let fewer nodes leave", "%s needs at least %d nodes: %d of %d would remain",
			c.name, c.can.MinNodes, left, len(c.stage.Data))
	}
}

var joinKind = Kind{
	Name: "join", Summary: "adds nodes as members of the database. A revert removes them.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true, Member: record.Joins},
	Docs: Docs{SectionMembership, []Row{{Examples: []string{`spare`}, Text: `the node joins the database. On revert, it leaves`},
		{Examples: []string{`{count: 1}`}, Text: "on a cluster that Skerry did not start: its command `join`. On revert, `leave`"}}},
	HeldState: "members",
	newSpec:   func() kindSpec { return new(join) },
}

type join struct {
	MemberSelector `yaml:",inline"`
}

func (e *join) check(s Layout, fail failure) {
	if s.Cluster != nil {
		requireCommand(fail, "join", s.Cluster.Join)
	}
	e.checkMembers(s, fail, "added")
}

func (e *join) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	if len(e.Nodes) == 0 {
		return &resizeAction{by: e.Count}
	}
	return newNodeAction(nodeAction{
		nodes: e.selectNodes(s, turn, busy, r), text: "%s joins", do: joinNode,
		undo: func(ctx context.Context, w *Testbed, node string, p *progress) error {
			return w.leave(ctx, node, database.Graceful, p)
		},
	})
}

func joinNode(ctx context.Context, w *Testbed, node string, p *progress) error {
	return w.join(ctx, node, p)
}

func (e *join) joiningNodes(s Layout) []string {
	nodes, _ := s.resolveNames(e.Nodes)
	return nodes
}

func (e *join) checkDatabase(c databaseCheck, entry Event, fail failure) {
	if k := c.stage.Cluster; k != nil {
		if entry.endsEarly() {
			requireCommand(fail, "leave", k.Leave)
		}
		return
	}
	if !c.can.Resize {
		fail("", "give the experiment more nodes from the start", "%s cannot add members while it serves", c.name)
		return
	}
	for _, n := range e.joiningNodes(c.stage) {
		if slices.Contains(c.stage.Data, n) && !c.hasLeave(n) {
			fail("nodes", "keep nodes out of database.nodes or database.count, and name those",
				"%s is a member from the start, and no event removes it", n)
			return
		}
	}
	if most := c.can.MaxNodes; most > 0 && len(c.stage.Data)+c.joiningCount() > most {
		fail("nodes", "", "%s supports at most %d nodes", c.name, most)
	}
}
