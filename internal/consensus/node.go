package consensus

import (
	"context"
)

// Node is a running member.
type Node struct{}

// Open starts a member: it replays the log in cfg.Dir and joins the others. ctx bounds
// the opening only.
func Open(ctx context.Context, cfg Config) (*Node, error) { return nil, ErrClosed }

// Propose appends data to the log and returns its index once it is committed and on this
// member's disk. Proposals of many goroutines are batched and pipelined; a follower forwards
// them, and takes them to the next leader when one fails: each is in the log at most once.
//
// An error matches ErrNotDone or ErrInDoubt. ctx should have a deadline: without leader
// Propose waits for one.
func (n *Node) Propose(ctx context.Context, data []byte) (index uint64, err error) {
	return 0, notDone(ErrClosed)
}

// Entries returns committed entries from index from on: at least one, then as many as fit
// into max bytes of data. It waits for the first to be committed. The first index of a
// log is 1. A *CompactedError tells that the log begins later.
func (n *Node) Entries(ctx context.Context, from uint64, max int) ([]Entry, error) {
	return nil, ErrClosed
}

// ReadIndex returns an index such that a state with it applied reflects every proposal
// that was acknowledged before the call, by whichever member. It takes a round trip to a majority
// (from the leader), shared by all callers that wait.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) { return 0, ErrClosed }

// Commit returns the index up to which Entries returns without waiting.
func (n *Node) Commit() uint64 { return 0 }

// Applied reports that the consumer has applied all entries up to index, durably. It may
// move backwards when the consumer lost its state.
func (n *Node) Applied(index uint64) {}

// Compact drops entries up to index as soon as segments of the log allow, whoever else has
// not applied them, though none that this member's consumer has not.
func (n *Node) Compact(index uint64) {}

// Fetch loads the state of member from (0: the nearest that has a later one) into this
// node's Snapshotter and returns the state's index. It is for a consumer that lost its state
// while its log is sound.
func (n *Node) Fetch(ctx context.Context, from uint64) (index uint64, err error) {
	return 0, ErrClosed
}

// Leader returns the leader, if one is known.
func (n *Node) Leader() (Member, bool) { return Member{}, false }

// IsLeader tells whether this member leads, as far as it knows.
func (n *Node) IsLeader() bool { return false }

// Changed returns a channel that is closed at the next change of leader or membership.
func (n *Node) Changed() <-chan struct{} { return nil }

// Members returns the members in order of their identifiers.
func (n *Node) Members() []Member { return nil }

// Self returns this member as the cluster knows it.
func (n *Node) Self() Member { return Member{} }

// Status returns the node as it stands.
func (n *Node) Status() Status { return Status{} }

// Add makes m a member, or changes an existing one's address, name, site or role, and
// returns once the change is committed. A new voter or witness starts as a learner; the
// leader promotes it when it has caught up.
func (n *Node) Add(ctx context.Context, m Member) error { return ErrClosed }

// Remove takes a member out of the cluster. Its identifier cannot be used again.
func (n *Node) Remove(ctx context.Context, id uint64) error { return ErrClosed }

// Transfer makes a voter the leader and returns when it is.
func (n *Node) Transfer(ctx context.Context, id uint64) error { return ErrClosed }

// Done is closed when the node has stopped: by Close, by removal from the cluster, or because
// its log failed; Err tells why.
func (n *Node) Done() <-chan struct{} { return nil }

// Err returns why the node stopped; nil while it runs and after Close.
func (n *Node) Err() error { return nil }

// Close stops the node and waits for all it started. Proposals that wait fail.
func (n *Node) Close() error { return nil }
