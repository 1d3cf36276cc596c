package consensus

import (
	"errors"
	"fmt"
)

var (
	// ErrNotDone is matched by every error of a proposal that certainly is not in the log
	// and never will be: it is safe to try again elsewhere.
	ErrNotDone = errors.New("not done")
	// ErrInDoubt is matched by the error of a proposal that may or may not come to be
	// committed: only the log can tell.
	ErrInDoubt = errors.New("in doubt")

	// ErrClosed tells that the node was closed.
	ErrClosed = errors.New("node is closed")
	// ErrRemoved tells that the member was removed from its cluster.
	ErrRemoved = errors.New("member was removed from the cluster")
	// ErrWitness tells that a witness has no entries to offer and no state to give.
	ErrWitness = errors.New("a witness offers no entries")
	// ErrTooLarge tells that an entry exceeds MaxEntry.
	ErrTooLarge = errors.New("entry is too large")
	// ErrLogFull tells that the log has reached its limit with entries that no consumer
	// has applied, so that none may be dropped.
	ErrLogFull = errors.New("log is full of entries that no member has applied")
	// ErrStorage tells that the log cannot be written, because of a full disk for instance.
	ErrStorage = errors.New("log cannot be written")
	// ErrCluster tells that a member or a data directory belongs to another cluster.
	ErrCluster = errors.New("belongs to another cluster")
	// ErrLog tells that another log of a cluster of the same name is there, or a state of it.
	ErrLog = errors.New("belongs to another log")
	// ErrNoSnapshotter tells that a state was asked of, or for, a member without Snapshotter.
	ErrNoSnapshotter = errors.New("member has no state to give")
	// ErrNotMember tells that no member has the identifier.
	ErrNotMember = errors.New("no such member")
)

// CompactedError tells that entries asked for are no longer in the log. The consumer
// continues at First, or later, after its state was brought there: by its Snapshotter's
// Load, which the node may have called in the meantime, or by Fetch.
type CompactedError struct {
	// First is the index of the first entry that the log still has.
	First uint64
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("entries before %d are no longer in the log", e.First)
}

// notDone marks an error of a proposal as certain.
func notDone(err error) error { return fmt.Errorf("%w: %w", ErrNotDone, err) }

// inDoubt marks an error of a proposal as uncertain.
func inDoubt(err error) error { return fmt.Errorf("%w: %w", ErrInDoubt, err) }
