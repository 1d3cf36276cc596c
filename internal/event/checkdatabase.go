package event

import (
	"fmt"
	"slices"

	"skerry/internal/database"
)

// CheckDatabase reports what a database cannot do of the events. The stage knows which of
// its nodes cannot leave.
func CheckDatabase(events []Event, s Stage, name string, can database.Capabilities, report Report) {
	c := databaseCheck{stage: s, name: name, can: can, events: events}
	for i, e := range events {
		at := fmt.Sprintf("[%d]", i)
		kind, of := e.kind()
		if of == nil {
			continue
		}
		fail := e.failure(at, kind, report)
		switch kind {
		case "leave":
			c.leave(e, fail)
		case "join":
			c.join(e, fail)
		case "start", "restart":
			if !can.Restart {
				fail("", "let a node leave and join in its place", "%s cannot be started again on the data of a member that was stopped", name)
			}
		case "kill", "stop":
			if !can.Restart && e.ends() {
				fail("", "leave out for and until: the node stays down", "%s cannot be started again on the data of a member that was stopped", name)
			}
		}
	}
}

type databaseCheck struct {
	stage  Stage
	name   string
	can    database.Capabilities
	events []Event
}

func (c databaseCheck) leave(e Event, fail failure) {
	if !c.can.Resize {
		fail("", "kill nodes, or cut their links", "%s cannot let members leave while it serves", c.name)
		return
	}
	const gracefully = "write manner: graceful, or kill nodes and leave them members"
	if mannerOf(e.Leave.Manner) == database.Abrupt {
		switch {
		case !c.can.LeaveAbrupt:
			fail("manner", gracefully, "%s has no procedure for members that were lost", c.name)
			return
		case c.stage.Frail != "":
			fail("manner", gracefully, "no node can leave abruptly: %s", c.stage.Frail)
			return
		}
	}
	nodes, _ := c.stage.nodes(e.Leave.Nodes.Nodes)
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
	if e.Leave.Choose != "all" && (e.Gap != nil && e.ends() || e.Every == nil && e.Churn == nil && e.Gap == nil) {
		away = min(away, e.Leave.Count)
	}
	if left := len(c.stage.Data) - away + c.joined(); e.Leave.Choose != "random" && left < c.can.MinNodes {
		fail("nodes", "let fewer leave", "%s needs at least %d nodes: of %d, %d would be left", c.name, c.can.MinNodes, len(c.stage.Data), left)
	}
}

// joined is how many spare nodes the events make members.
func (c databaseCheck) joined() int { return len(Joining(c.events, c.stage)) }

func (c databaseCheck) join(e Event, fail failure) {
	if !c.can.Resize {
		fail("", "give the experiment more nodes from the start", "%s cannot take in members while it serves", c.name)
		return
	}
	nodes, _ := c.stage.nodes(e.Join.Nodes)
	for _, n := range nodes {
		if slices.Contains(c.stage.Data, n) && !c.leaves(n) {
			fail("nodes", "leave nodes of the topology out of database.nodes or database.count, and name those", "%s is a member from the start, and no event lets it leave", n)
			return
		}
	}
	if most := c.can.MaxNodes; most > 0 && len(c.stage.Data)+c.joined() > most {
		fail("nodes", "", "%s forms clusters of %d nodes at most", c.name, most)
	}
}

// leaves tells whether some event lets a node leave.
func (c databaseCheck) leaves(node string) bool {
	return slices.ContainsFunc(c.events, func(e Event) bool {
		if e.Leave == nil {
			return false
		}
		nodes, _ := c.stage.nodes(e.Leave.Nodes.Nodes)
		return slices.Contains(nodes, node)
	})
}

// Joining are the nodes that do not carry the database at first and that events make
// members: they need links to all others.
func Joining(events []Event, s Stage) (joining []string) {
	for _, e := range events {
		if e.Join == nil {
			continue
		}
		nodes, _ := s.nodes(e.Join.Nodes)
		for _, n := range nodes {
			if !slices.Contains(s.Data, n) && !slices.Contains(joining, n) {
				joining = append(joining, n)
			}
		}
	}
	return joining
}
