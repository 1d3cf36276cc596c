package consensus

import (
	"errors"
	"fmt"
)

var (
	// ErrNotDone marks an error of a proposal that is not in the log and never will be. It may be proposed again elsewhere.
	ErrNotDone = errors.New("not done")
	// ErrInDoubt marks an error of a proposal that may or may not be committed. Only the log can answer.
	ErrInDoubt = errors.New("in doubt")

	ErrClosed  = errors.New("node is closed")
	ErrRemoved = errors.New("member was removed from the cluster")
	// ErrWitness reports that a witness has neither entries nor a state.
	ErrWitness = errors.New("a witness offers no entries")
	// ErrTooLarge reports an entry that exceeds MaxEntry.
	ErrTooLarge = errors.New("entry is too large")
	// ErrLogFull reports a log at its limit with entries that no consumer has applied, so that none may be dropped.
	ErrLogFull = errors.New("log is full of entries that no member has applied")
	// ErrStorage reports that the log cannot be written, for instance because the disk is full.
	ErrStorage = errors.New("log cannot be written")
	// ErrCluster reports a member or a data directory of another cluster.
	ErrCluster = errors.New("belongs to another cluster")
	// ErrLog reports another log of a cluster with the same name, or a state of such a log.
	ErrLog = errors.New("belongs to another log")
	// ErrNoSnapshotter reports that a state was requested from, or for, a member without Snapshotter.
	ErrNoSnapshotter = errors.New("member has no state to give")
	ErrNotMember     = errors.New("no such member")
)

// CompactedError reports that requested entries are no longer in the log. The consumer continues at First or later once
// it has a newer state: by Snapshotter.Load, which the node may have called in the meantime, or by Fetch.
type CompactedError struct {
	// First is the index of the first entry that the log still has.
	First uint64
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("entries before %d are no longer in the log", e.First)
}

func notDone(err error) error { return fmt.Errorf("%w: %w", ErrNotDone, err) }

func inDoubt(err error) error { return fmt.Errorf("%w: %w", ErrInDoubt, err) }
