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

// A member uses a database only after two checks: the database has the log's name, and it has
// not applied an entry that the log lacks. Without these checks:
//
//  1. A database has applied 1000 entries of a log.
//  2. Its members lose their directories and start a new log.
//  3. Writes 2 to 1000 of the new log are acknowledged but never applied, because the database
//     is already past them. Reads miss them, and the reported lag is 0.
//
// The database may be ahead of this member's log while another member of the cloud applies.
// It is never ahead of the commit index of a majority.

var (
	errOwnershipUnknown = errors.New("database ownership not checked yet")
	// ErrForeign is returned for a database that holds the state of another log.
	ErrForeign = errors.New("the database holds the state of another log")
	// ErrAhead is returned for a database that has applied more entries than the log holds.
	ErrAhead = errors.New("the database is ahead of the log")
)

const (
	ownershipRetry   = 20 * time.Millisecond
	readIndexTimeout = 2 * time.Second
)

const foreignRemedy = "nothing is read from it or written to it. Empty it to have it rebuilt from the log, restore the log's own, " +
	"or begin a new log with what it holds: hydra adopt"

func (n *Node) checkOwnership(ctx context.Context, p cloudsql.Progress) error {
	id := n.log.Identity()
	switch {
	case !id.Known || id.Log == "":
		return fmt.Errorf("%w: log has no name yet", errOwnershipUnknown)
	case p.Log == id.Log, p.Log == "" && p.Applied == 0:
	default:
		return foreignError(p, id.Log)
	}
	if p.Applied <= n.log.Commit() {
		return nil
	}
	index, err := n.readLogIndex(ctx)
	if err == nil && p.Applied > index {
		err = aheadError(p.Applied, index)
	}
	return err
}

// readLogIndex returns the index up to which a majority has committed the log.
func (n *Node) readLogIndex(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, readIndexTimeout)
	defer cancel()
	index, err := n.log.ReadIndex(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w: reading the log's index: %w", errOwnershipUnknown, err)
	}
	return index, nil
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

// acceptProgress adopts progress p, just read from the database. After a step back, entries are applied again from there.
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

func (n *Node) rejectAhead(applied, index uint64) error {
	n.owned.Store(false)
	n.interruptApply()
	return aheadError(applied, index)
}

func (n *Node) interruptApply() {
	if stop := n.cancelApply.Load(); stop != nil {
		(*stop)()
	}
}

// handleStateLoss reports whether the database changed under the member. If so, the applier checks it again.
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

// LogStart is the entry after which a log starts on an existing database.
type LogStart struct {
	Log string `json:"log"`
	// After is the index of the state: the first entry is After+1.
	After uint64 `json:"after"`
}

// String returns NAME@INDEX, which ParseLogStart reads.
func (b LogStart) String() string { return fmt.Sprintf("%s@%d", b.Log, b.After) }

func ParseLogStart(text string) (LogStart, error) {
	name, index, ok := strings.Cut(text, "@")
	after, err := strconv.ParseUint(index, 10, 63)
	if !ok || name == "" || err != nil || after == 0 {
		return LogStart{}, fmt.Errorf("%w: log start %q is not NAME@INDEX", ErrConfig, text)
	}
	return LogStart{name, after}, nil
}

// Adopt starts a new log for a stopped member. With a nil at, the log continues from the state of the member's database.
// Every other member of the cluster gets the LogStart that the first member returned. A database of another log must be
// empty, or is emptied if discard is set, and is then rebuilt from the first member's database.
//
// The database gets the log's name before the log is created. After a crash between the two steps the database is
// refused, and a second Adopt gives it another name. In the reverse order a log could exist that no database belongs to.
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

func assignLog(ctx context.Context, s *cloudsql.Store, p cloudsql.Progress) (b LogStart, err error) {
	if p.Applied == 0 {
		return b, advice.With(errors.New("database is empty"), "start the member: its log begins with its first entry")
	}
	if b.Log, err = consensus.NewLogName(); err != nil {
		return b, err
	}
	b.After = p.Applied
	return b, s.AssignLog(ctx, p, b.Log)
}
