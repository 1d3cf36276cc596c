package hydra

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/systems/consensus"
	"skerry/systems/hydra/cloudsql"
)

// A member applies its log to a database, and answers from it, once it is sure that the
// database holds a state of that log: the name that it has is the log's, and no entry has been
// applied that the log lacks. Without that
//
//  1. a database has applied 1000 entries of a log;
//  2. its members' directories are lost, and the same members begin a new log;
//  3. writes 2 to 1000 of the new log are acknowledged and never applied there, since the
//     database is further than that. Reads miss them, and the lag is said to be 0.
//
// What the database has applied may be more than this member's log holds yet, where another
// member of the cloud applies; it is never more than a majority says that is committed.

var (
	// errUnsure is told while it is not known yet whether the database is the log's.
	errOwnershipUnknown = errors.New("whether the database belongs to the log is not known yet")
	// ErrForeign says that a database holds the state of another log.
	ErrForeign = errors.New("the database holds the state of another log")
	// ErrAhead says that a database holds more than the log does.
	ErrAhead = errors.New("the database is ahead of the log")
)

const (
	// unsure is how long a member that is not sure waits before it looks again.
	ownershipRetry = 20 * time.Millisecond
	// sureTimeout bounds the question how far the log is.
	readIndexTimeout = 2 * time.Second
)

// foreignRemedy is what can be done about a database that is refused.
const foreignRemedy = "nothing is read from it or written to it. Empty it to have it rebuilt from the log, restore the log's own, " +
	"or begin a new log with what it holds: hydra adopt"

// checkOwnership returns nil when a database that is so far belongs to the member's log.
func (n *Node) checkOwnership(ctx context.Context, p cloudsql.Progress) error {
	id := n.log.Identity()
	switch {
	case !id.Known || id.Log == "" && id.Born:
		return fmt.Errorf("%w: the log has no name yet", errOwnershipUnknown)
	case p.Log == id.Log, p.Log == "" && (p.Applied == 0 || !id.Born): // the latter of a version that gave no names
	case id.Log == "": // the name may be in an entry that has not come here
		if err := n.checkCaughtUp(ctx); err != nil {
			return err
		}
		if id = n.log.Identity(); p.Log != id.Log {
			return foreignError(p, id.Log)
		}
	default:
		return foreignError(p, id.Log)
	}
	if p.Applied <= n.log.Commit() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readIndexTimeout)
	defer cancel()
	index, err := n.log.ReadIndex(ctx)
	if err != nil {
		return fmt.Errorf("%w: how far the log is: %w", errOwnershipUnknown, err)
	}
	if p.Applied > index {
		return aheadError(p.Applied, index)
	}
	return nil
}

// checkCaughtUp returns nil when the member has all that was committed before the call.
func (n *Node) checkCaughtUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readIndexTimeout)
	defer cancel()
	index, err := n.log.ReadIndex(ctx)
	if err != nil {
		return fmt.Errorf("%w: how far the log is: %w", errOwnershipUnknown, err)
	}
	if n.log.Commit() < index {
		return fmt.Errorf("%w: the member is behind", errOwnershipUnknown)
	}
	return nil
}

func foreignError(p cloudsql.Progress, log string) error {
	named := func(log string) string {
		if log == "" {
			return "one without a name"
		}
		return log
	}
	return fmt.Errorf("%w: of %s, up to entry %d, and not of %s; %s", ErrForeign, named(p.Log), p.Applied, named(log), foreignRemedy)
}

func aheadError(applied, index uint64) error {
	return fmt.Errorf("%w: it has applied entry %d of a log that ends at %d; %s", ErrAhead, applied, index, foreignRemedy)
}

// acceptProgress takes what a look at the database has found: errors of owns. A database that is less
// far than it was is applied to again from there.
func (n *Node) acceptProgress(ctx context.Context, p cloudsql.Progress) error {
	if id := n.log.Identity(); !n.owned.Load() || p.Log != id.Log {
		if err := n.checkOwnership(ctx, p); err != nil {
			n.owned.Store(false)
			return err
		}
	}
	n.store.SetLog(n.log.Identity().Log, p.Log)
	if before := n.progress.index(); p.Applied < before {
		n.Log.Warn("the database has gone back: what it lacks is applied again", "from", before, "to", p.Applied)
		n.freshAsOf.Store(nil)
		n.log.Applied(p.Applied)
	}
	n.progress.setApplied(p.Applied)
	n.owned.Store(true)
	return nil
}

// rejectAhead is astray of a database that has more than the log.
func (n *Node) rejectAhead(applied, index uint64) error {
	n.owned.Store(false)
	n.interruptApply()
	return aheadError(applied, index)
}

// interruptApply has who applies look at the database again.
func (n *Node) interruptApply() {
	if stop := n.cancelApply.Load(); stop != nil {
		(*stop)()
	}
}

// handleStateLoss tells whether an error is that the database is not what it was, and has who applies
// look at it again. Nobody who waits is told meanwhile that it is further than it is.
func (n *Node) handleStateLoss(err error) bool {
	if !errors.Is(err, cloudsql.ErrBack) && !errors.Is(err, cloudsql.ErrLog) {
		return false
	}
	n.owned.Store(false)
	n.freshAsOf.Store(nil)
	n.progress.rollBack(n.store.Applied())
	n.interruptApply()
	return true
}

// LogStart is where a log begins that goes on after a database's state.
type LogStart struct {
	Log string `json:"log"`
	// After is the index that the state is of: the first entry is the next one.
	After uint64 `json:"after"`
}

// String is the form that ParseBeginning reads: NAME@INDEX.
func (b LogStart) String() string { return fmt.Sprintf("%s@%d", b.Log, b.After) }

// ParseLogStart reads a beginning.
func ParseLogStart(text string) (LogStart, error) {
	name, index, ok := strings.Cut(text, "@")
	after, err := strconv.ParseUint(index, 10, 63)
	if !ok || name == "" || err != nil || after == 0 {
		return LogStart{}, fmt.Errorf("%w: the beginning of a log %q is not NAME@INDEX", ErrConfig, text)
	}
	return LogStart{name, after}, nil
}

// Adopt begins a new log for a member that is not running: one that goes on after what its
// database holds (at nil), or, at every other member of the cluster, the log whose beginning
// the first was told. A database there that is not of this log has to be empty, or is emptied
// with discard: it is rebuilt from the first one's.
//
// The database is given the log's name before the log is made. Ended between the two, the
// member is refused its database, and adopting again gives it another name; the other way
// round there would be a log that no database belongs to.
func Adopt(ctx context.Context, c Config, at *LogStart, discard bool) (b LogStart, err error) {
	if err := c.Complete(); err != nil {
		return b, err
	}
	if c.Direct || c.Join || c.Witness && at == nil {
		return b, fmt.Errorf("%w: a log is begun by a member of a new cluster, with a database unless it is told where", ErrConfig)
	}
	cfg := c.consensusConfig()
	if err := consensus.Vacant(cfg); err != nil {
		return b, err
	}
	if c.Witness {
		return *at, consensus.Begin(cfg, at.Log, at.After)
	}
	s, err := cloudsql.Open(ctx, cloudsql.Config{URL: c.Database, Cluster: c.Cluster, Durable: true, Timeout: c.DatabaseTimeout.Duration()})
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, err := s.Progress(ctx)
	if err != nil {
		return b, err
	}
	if at == nil {
		if b, err = assignLog(ctx, s, p); err != nil {
			return b, err
		}
	} else if b = *at; p.Applied != 0 && p.Log != b.Log {
		if !discard {
			return b, advice.With(foreignError(p, b.Log), "if another cloud's database is the one to go on with, discard this one's rows: --discard")
		}
		if err := s.Discard(ctx); err != nil {
			return b, err
		}
	}
	return b, consensus.Begin(cfg, b.Log, b.After)
}

// assignLog gives a database the name of a new log.
func assignLog(ctx context.Context, s *cloudsql.Store, p cloudsql.Progress) (b LogStart, err error) {
	if p.Applied == 0 {
		return b, advice.With(errors.New("the database holds nothing to go on with"), "start the member: its log begins with its first entry")
	}
	if b.Log, err = consensus.NewLogName(); err != nil {
		return b, err
	}
	b.After = p.Applied
	return b, s.AssignLog(ctx, p, b.Log)
}
