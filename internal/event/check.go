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

// minInterval is as often as an event may be repeated: what happens more often is a
// property of the link or the node, not an event.
const minInterval = unit.Duration(100 * time.Millisecond)

// Report takes a mistake at a path of the list: "[1].latency.of".
type Report func(path, hint, format string, args ...any)

// Check reports what is wrong with events on a stage, whatever the database. end is when
// the measurement ends, 0 where nobody knows.
func Check(events []Event, s Layout, end time.Duration, report Report) {
	for i, e := range events {
		at := fmt.Sprintf("[%d]", i)
		if e.Spec.spec == nil {
			report(at, "give one of "+strings.Join(KindNames(), ", "), "nothing says what happens")
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

// failure reports mistakes at keys of the event's kind.
func (e Event) failure(at string, report Report) failure {
	return func(key, hint, format string, args ...any) {
		path := strict.Join(at, e.Kind())
		if key != "" {
			path = strict.Join(path, key)
		}
		report(path, hint, format, args...)
	}
}

// timing checks when an event happens.
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
		c.fail("until", "", "it is over before it begins, at %v", *c.At)
	}
}

func (c timing) begin() {
	switch {
	case c.At == nil && c.When == "" && c.Churn == nil:
		c.fail("", "give at: 10s, when: steady, or churn", "nothing says when it happens")
	case c.After > 0 && c.When == "":
		c.fail("after", "give at in its place, or when", "there is nothing that it comes after")
	case (c.When == whenCompleted || c.When == whenReverted) && c.above == nil:
		c.fail("when", "give at", "there is no entry above that could be %s", c.When)
	case c.When == whenReverted && !c.above.endsEarly():
		c.fail("when", "give the entry above for or until, or wait until it is completed", "the entry above is not reverted before the trial ends")
	}
}

func (c timing) repetition() {
	for key, d := range map[string]*unit.Duration{"every": c.Every, "gap": c.Gap} {
		if d != nil && *d < minInterval {
			c.fail(key, "", "%v is too often: the least is %v", *d, minInterval)
		}
	}
	if c.Churn != nil && c.Churn.Every < minInterval {
		c.fail("churn.every", "", "%v is too often: the least is %v", c.Churn.Every, minInterval)
	}
	if c.Churn != nil && c.Churn.Lasting != nil && c.For != nil {
		c.fail("for", "keep one of them", "for and churn.lasting exclude each other")
	}
	if c.Every != nil && c.repeatsState() && (c.For == nil || *c.For >= *c.Every) {
		c.fail("every", "give for, shorter than every, or choose: next", "the same nodes are still %s when it happens again", c.Spec.kind.HeldState)
	}
}

// repeatsState tells whether the event puts the same nodes, each time, into a state that they
// cannot be put into twice.
func (c timing) repeatsState() bool {
	again, ok := c.Spec.spec.(repeatable)
	return c.Spec.kind.HeldState != "" && ok && again.selectsAll()
}

func (c timing) duration() {
	if c.For != nil && *c.For == 0 {
		c.fail("for", "", "what lasts no time cannot be measured")
	}
	if c.For == nil && (c.Churn == nil || c.Churn.Lasting == nil) {
		return
	}
	if !c.Spec.kind.revertible() {
		key := "for"
		if c.For == nil {
			key = "churn.lasting"
		}
		c.fail(key, "leave it out", "%s is not taken back", c.Kind())
	}
}

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
