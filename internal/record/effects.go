package record

// Effect is what an event does to its targets. Reports, maps and the runner of events depend on the effect and not on
// the kind of an event, so that they handle a new kind without changes.
//
//	            begun                complete                  reverted
//	settles     │◄── in force ──────►│ the targets keep the new condition
//	otherwise   │◄── in force ────────────────────────────────►│ the targets return to their old condition
//
// The reversal of a settling event settles too, and sets the opposite condition.
type Effect struct {
	On    Scope     `json:"on"`
	Makes Condition `json:"makes"`
	// Settles is true if the event ends when its change is complete.
	Settles bool `json:"settles,omitempty"`
	// Member is the change of the targets' membership of the database. The end of a trial does not revert it.
	Member Membership `json:"member,omitempty"`
}

// Opposite is the effect of the reversal of a settling event.
func (e Effect) Opposite() *Effect {
	e.Makes, e.Member = e.Makes.opposite(), e.Member.Opposite()
	return &e
}

// Scope is the kind of an event's targets.
type Scope string

// Scopes: names of links, names of nodes, and streams of data between nodes ("a>b").
const (
	OnLinks   Scope = "links"
	OnNodes   Scope = "nodes"
	OnStreams Scope = "streams"
)

// Condition is the condition of a link or a node.
type Condition string

// Conditions: as set, changed by an event, or out of use.
const (
	Up      Condition = "up"
	Changed Condition = "changed"
	Down    Condition = "down"
)

func (c Condition) opposite() Condition {
	if c == Up {
		return Down
	}
	return Up
}

// Membership is a change of the members of a database.
type Membership string

const (
	Leaves   Membership = "leave"
	Joins    Membership = "join"
	Upgrades Membership = "upgrade" // the member continues with another version
)

// Opposite is the reverse change, m itself if there is none.
func (m Membership) Opposite() Membership {
	switch m {
	case Leaves:
		return Joins
	case Joins:
		return Leaves
	}
	return m
}
