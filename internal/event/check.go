package event

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/database"
)

// minInterval is the shortest repetition interval. Faster changes are a property of the link or
// node, not an event.
const minInterval = unit.Duration(100 * time.Millisecond)

// reportFunc is called for a mistake at a path of the list, such as "[1].latency.of".
type reportFunc func(path, hint, format string, args ...any)

// Check reports mistakes in events that do not depend on the database. end is the end of the
// measurement, 0 if unknown.
func Check(events []Event, s Layout, end time.Duration, report reportFunc) {
	for i, e := range events {
		at := fmt.Sprintf("[%d]", i)
		if e.Spec.spec == nil {
			report(at, "give one of "+strings.Join(kindNames(), ", "), "kind of event missing")
			continue
		}
		e.Spec.spec.check(s, e.failure(at, report))
		c := timing{Event: e, end: end, fail: func(key, hint, format string, args ...any) {
			if key != "" {
				key = "." + key
			}
			report(at+key, hint, format, args...)
		}}
		if i > 0 {
			c.above = &events[i-1]
		}
		c.check()
	}
}

func (e Event) failure(at string, report reportFunc) failure {
	return func(key, hint, format string, args ...any) {
		path := strict.Join(at, e.Kind())
		if key != "" {
			path = strict.Join(path, key)
		}
		report(path, hint, format, args...)
	}
}

type timing struct {
	Event
	above *Event
	end   time.Duration
	fail  failure
}

func (c timing) check() {
	c.begin()
	c.repetition()
	c.duration()
	if c.At != nil && c.end > 0 && c.At.Duration() >= c.end {
		c.fail("at", "make the trial longer or the event earlier", "at %v the trial has ended (stop.time is %v)", *c.At, unit.Duration(c.end))
	}
	if c.At != nil && c.Until != nil && *c.Until <= *c.At {
		c.fail("until", "", "the event ends before it starts, at %v", *c.At)
	}
}

func (c timing) begin() {
	switch {
	case c.At == nil && c.When == "" && c.Churn == nil:
		c.fail("", "give at: 10s, when: steady, or churn", "start time missing")
	case c.After > 0 && c.When == "":
		c.fail("after", "give at, or add when", "requires when")
	case (c.When == whenCompleted || c.When == whenReverted) && c.above == nil:
		c.fail("when", "give at", "there is no previous entry that can be %s", c.When)
	case c.When == whenReverted && !c.above.endsEarly():
		c.fail("when", "give the previous entry for or until, or write when: completed",
			"the previous entry is not reverted before the trial ends")
	}
}

func (c timing) repetition() {
	for key, d := range map[string]*unit.Duration{"every": c.Every, "gap": c.Gap} {
		if d != nil && *d < minInterval {
			c.fail(key, "", "interval %v is below the minimum of %v", *d, minInterval)
		}
	}
	if c.Churn != nil && c.Churn.Every < minInterval {
		c.fail("churn.every", "", "interval %v is below the minimum of %v", c.Churn.Every, minInterval)
	}
	if c.Churn != nil && c.Churn.Lasting != nil && c.For != nil {
		c.fail("for", "keep one of them", "for and churn.lasting exclude each other")
	}
	if c.Every != nil && c.repeatsState() && (c.For == nil || *c.For >= *c.Every) {
		c.fail("every", "give for, shorter than every, or choose: next",
			"the same nodes are still %s at the next occurrence", c.Spec.kind.HeldState)
	}
}

// repeatsState reports whether every occurrence puts the same nodes into a state that a node cannot
// enter twice.
func (c timing) repeatsState() bool {
	again, ok := c.Spec.spec.(repeatable)
	return c.Spec.kind.HeldState != "" && ok && again.selectsAll()
}

func (c timing) duration() {
	if c.For != nil && *c.For == 0 {
		c.fail("for", "", "duration must be positive")
	}
	if c.For == nil && (c.Churn == nil || c.Churn.Lasting == nil) {
		return
	}
	revertible, hint := c.Spec.kind.revertible(), "remove it"
	if u, ok := c.Spec.spec.(undoable); ok {
		revertible, hint = u.undoable()
	}
	if !revertible {
		key := "for"
		if c.For == nil {
			key = "churn.lasting"
		}
		c.fail(key, hint, "%s cannot be reverted", c.Kind())
	}
}

// CheckDatabase reports what the database cannot do for the events.
func CheckDatabase(events []Event, s Layout, name string, can database.Capabilities, report reportFunc) {
	c := databaseCheck{stage: s, name: name, can: can, events: events}
	for i, e := range events {
		if n, ok := e.Spec.spec.(databaseDependent); ok {
			n.checkDatabase(c, e, e.failure(fmt.Sprintf("[%d]", i), report))
		}
	}
}

type databaseCheck struct {
	stage  Layout
	name   string
	can    database.Capabilities
	events []Event
}

// requireRestart reports a database that cannot restart stopped members on their data.
func (c databaseCheck) requireRestart(fail failure) {
	if !c.can.Restart {
		fail("", "use leave and join instead", "%s cannot restart a stopped member on its data", c.name)
	}
}

// requireRestartIfReverted does the same if the event ends before the trial does.
func (c databaseCheck) requireRestartIfReverted(e Event, fail failure) {
	if !c.can.Restart && e.endsEarly() {
		fail("", "remove for and until: the node stays down", "%s cannot restart a stopped member on its data", c.name)
	}
}

func (c databaseCheck) joiningCount() int { return len(JoiningNodes(c.events, c.stage)) }

func (c databaseCheck) hasLeave(node string) bool {
	return slices.ContainsFunc(c.events, func(e Event) bool {
		l, ok := e.Spec.spec.(leaver)
		return ok && slices.Contains(l.leavingNodes(c.stage), node)
	})
}

// JoiningNodes returns the nodes that start without the database and that an event adds as members.
// They need links to all other nodes.
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
