package database

// Reads is how fresh what is read is sure to be, while members and links fail: a larger one
// promises more.
type Reads int

// Promises of reads.
const (
	// ReadsAny may return what was, in any order.
	ReadsAny Reads = iota
	// ReadsMonotonic never go back in time, and see every acknowledged write unless members
	// disagree on the time.
	ReadsMonotonic
	// ReadsLinearizable see every write that was acknowledged before they began.
	ReadsLinearizable
)

var readsNames = []string{"any", "monotonic", "linearizable"}

// String is the promise as people write it.
func (r Reads) String() string { return readsNames[r] }

// ReadsNames are all promises, the weakest first.
func ReadsNames() []string { return append([]string(nil), readsNames...) }

// Choice is a way to set a database that matters to those who must choose one: what it
// promises, and what it gives up for that.
type Choice struct {
	// Name tells the choice from the database's others: "quorum", "local reads".
	Name    string
	Options Options
	Reads   Reads
	// Loses says which acknowledged writes a member's loss can take along, "" for none.
	Loses string
	// GivesUp is what is paid for it.
	GivesUp string
}

// Placement is what choices depend on.
type Placement struct {
	// Nodes are the data nodes, in topology order.
	Nodes []string
	// Near is the data node that is nearest the client, and Site where it stands.
	Near, Site string
}

// Copies is how many copies of three can be had.
func (p Placement) Copies() int { return min(3, len(p.Nodes)) }
