package event

import (
	"fmt"
	"slices"

	"skerry/internal/database"
)

// CheckDatabase reports what a database cannot do of the events. The stage knows which of
// its nodes cannot leave.
func CheckDatabase(events []Event, s Layout, name string, can database.Capabilities, report Report) {
	c := databaseCheck{stage: s, name: name, can: can, events: events}
	for i, e := range events {
		if n, ok := e.Spec.spec.(databaseDependent); ok {
			n.checkDatabase(c, e, e.failure(fmt.Sprintf("[%d]", i), report))
		}
	}
}

// databaseCheck is the database that events are checked against, and all of them.
type databaseCheck struct {
	stage  Layout
	name   string
	can    database.Capabilities
	events []Event
}

// restarts: members that were stopped start on the data that they had.
func (c databaseCheck) requireRestart(fail failure) {
	if !c.can.Restart {
		fail("", "let a node leave and join in its place", "%s cannot be started again on the data of a member that was stopped", c.name)
	}
}

// restartedLater: so do those that the event ends, where it is taken back.
func (c databaseCheck) requireRestartIfReverted(e Event, fail failure) {
	if !c.can.Restart && e.endsEarly() {
		fail("", "leave out for and until: the node stays down", "%s cannot be started again on the data of a member that was stopped", c.name)
	}
}

// joiningCount is how many spare nodes the events make members.
func (c databaseCheck) joiningCount() int { return len(JoiningNodes(c.events, c.stage)) }

// hasLeave tells whether some event lets a node leave.
func (c databaseCheck) hasLeave(node string) bool {
	return slices.ContainsFunc(c.events, func(e Event) bool {
		l, ok := e.Spec.spec.(leaver)
		return ok && slices.Contains(l.leavingNodes(c.stage), node)
	})
}

// JoiningNodes are the nodes that do not carry the database at first and that events make
// members: they need links to all others.
func JoiningNodes(events []Event, s Layout) (joining []string) {
	for _, e := range events {
		j, ok := e.Spec.spec.(joiner)
		if !ok {
			continue
		}
		for _, n := range j.joiningNodes(s) {
			if !slices.Contains(s.Data, n) && !slices.Contains(joining, n) {
				joining = append(joining, n)
			}
		}
	}
	return joining
}
