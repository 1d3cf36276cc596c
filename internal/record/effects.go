package record

// Effect is what an event does to its targets. Reports, maps and the runner of events know
// this of an event and not its kind, so that a new kind is theirs from its first record on.
//
//	            begun                complete                  taken back
//	settles     │◄── in force ──────►│ its targets stay so
//	otherwise   │◄── in force ────────────────────────────────►│ its targets are as before
//
// What takes a settling event back settles too, and makes of its targets the opposite.
type Effect struct {
	On    Scope     `json:"on"`
	Makes Condition `json:"makes"`
	// Settles says that the event is over when its change is complete.
	Settles bool `json:"settles,omitempty"`
	// Member is what becomes of the targets' membership of the database; the end of a trial
	// does not take such a change back.
	Member Membership `json:"member,omitempty"`
}

// Opposite is the effect of taking it back, where that settles too.
func (e Effect) Opposite() *Effect {
	e.Makes, e.Member = e.Makes.opposite(), e.Member.Opposite()
	return &e
}

// Scope is what an event happens to.
type Scope string

// The scopes: links by name, nodes by name, and streams of data from node to node ("a>b").
const (
	OnLinks   Scope = "links"
	OnNodes   Scope = "nodes"
	OnStreams Scope = "streams"
)

// Condition is what a link or a node is like.
type Condition string

// The conditions: as it was set, changed by an event, or out of use.
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

// The changes of membership.
const (
	Leaves Membership = "leave"
	Joins  Membership = "join"
)

// Opposite is what takes the change back.
func (m Membership) Opposite() Membership {
	switch m {
	case Leaves:
		return Joins
	case Joins:
		return Leaves
	}
	return m
}

// deriveEffect gives the events of runs from before record.Effect the effect of their kind. These are
// the kinds that there were then; a newer one is recorded with its own.
func deriveEffect(kind string, of **Effect) {
	if e, ok := effectsBefore[kind]; ok && *of == nil {
		*of = &e
	}
}

var effectsBefore = map[string]Effect{
	"latency":      {On: OnLinks, Makes: Changed},
	"bandwidth":    {On: OnLinks, Makes: Changed},
	"loss":         {On: OnLinks, Makes: Changed},
	"jitter":       {On: OnLinks, Makes: Changed},
	"link_down":    {On: OnLinks, Makes: Down},
	"link_up":      {On: OnLinks, Makes: Up},
	"link_flap":    {On: OnLinks, Makes: Down},
	"partition":    {On: OnLinks, Makes: Down},
	"kill":         {On: OnNodes, Makes: Down},
	"stop":         {On: OnNodes, Makes: Down},
	"start":        {On: OnNodes, Makes: Up, Settles: true},
	"restart":      {On: OnNodes, Makes: Changed, Settles: true},
	"pause":        {On: OnNodes, Makes: Down},
	"resume":       {On: OnNodes, Makes: Up, Settles: true},
	"leave":        {On: OnNodes, Makes: Down, Settles: true, Member: Leaves},
	"join":         {On: OnNodes, Makes: Up, Settles: true, Member: Joins},
	"cpu":          {On: OnNodes, Makes: Changed},
	"memory":       {On: OnNodes, Makes: Changed},
	"disk_slow":    {On: OnNodes, Makes: Changed},
	"disk_full":    {On: OnNodes, Makes: Changed},
	"network_load": {On: OnStreams, Makes: Changed},
	"clock_skew":   {On: OnNodes, Makes: Changed},
}
