package hydra

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"skerry/systems/consensus"
	"skerry/systems/hydra/cloudsql"
)

const (
	// maxBatch is the most bytes of entries, maxEntries the most of them, that are applied
	// in one SQL transaction: what a database commits at once without making readers of
	// fresh rows wait long.
	maxBatch   = 4 << 20
	maxEntries = 4096
	// takeover is how long a cloud's index stands still, with entries to apply, before
	// another member applies them. Only time is lost by a wrong guess.
	takeoverAfter = time.Second
	// abandoned is the same where the member that applies is out of reach.
	unreachableAfter = 30 * time.Millisecond
	// followIdle is how often a member that does not apply looks how far the database is while
	// nobody waits for it. While somebody does, who applies tells when there is something new;
	// followBusy is for what was not told: a frame may be lost, or who applies be of a version
	// that does not tell.
	followIdle = 50 * time.Millisecond
	followBusy = 20 * time.Millisecond
	// heedEvery is how often who applies is asked to tell; it does so for twice as long.
	subscribeEvery = 500 * time.Millisecond
	// retryLeast and retryMost bound the pause after an error of the database.
	retryLeast = 100 * time.Millisecond
	retryMost  = 2 * time.Second
	// syncEvery is how often the log is told what is safe in the database.
	syncEvery = time.Second
	// syncTimeout bounds that.
	syncTimeout = 10 * time.Second
)

// errLog says that the log does not do what it promises.
var errLog = errors.New("the log has a gap")

// applyLoop applies the log until ctx ends.
func (n *Node) applyLoop(all context.Context) {
	pause := retryLeast
	ctx, stop := context.WithCancel(all)
	defer func() { stop() }()
	n.cancelApply.Store(&stop)
	for all.Err() == nil {
		if ctx.Err() != nil { // what is known of the database has changed meanwhile
			var next context.CancelFunc
			ctx, next = context.WithCancel(all)
			stop = next
			n.cancelApply.Store(&next)
		}
		var err error
		switch {
		case !n.owned.Load():
			err = n.prepareDatabase(ctx)
		case n.applying.Load():
			err = n.applyBatch(ctx)
		default:
			err = n.followApplier(ctx)
		}
		var compacted *consensus.CompactedError
		switch {
		case err == nil:
			pause = retryLeast
			n.markServing()
			continue
		case ctx.Err() != nil:
			continue
		case errors.Is(err, errOwnershipUnknown):
			n.pause(ctx, ownershipRetry)
			continue
		case errors.Is(err, cloudsql.ErrMoved):
			n.applying.Store(!n.isShared())
			before := n.progress.index()
			if _, failed := n.readProgress(ctx); failed != nil || n.progress.index() != before {
				err = failed
			}
		case errors.Is(err, errBatchHalved):
			continue
		case errors.As(err, &compacted):
			err = n.rebuildDatabase(ctx, compacted)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		n.reportProblem(err)
		if !n.pause(ctx, pause) {
			return
		}
		pause = min(2*pause, retryMost)
	}
}

// pause waits for a while; false: the log has ended.
func (n *Node) pause(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-n.log.Done():
		return false
	case <-time.After(pause):
	}
	return true
}

// chooseApplier decides who applies by who did last.
func (n *Node) chooseApplier(holder string) {
	n.applying.Store(holder == "" || holder == n.Name || !n.isShared())
}

// prepareDatabase looks at a database of which nothing is sure: it may have been away when the member
// started, be another log's, or have gone back.
func (n *Node) prepareDatabase(ctx context.Context) error {
	if err := n.store.Prepare(ctx); err != nil {
		return err
	}
	holder, err := n.readProgress(ctx)
	if err != nil {
		return err
	}
	n.chooseApplier(holder)
	return nil
}

// markServing notes that the database serves.
func (n *Node) markServing() {
	n.checkOnce.Do(func() { close(n.checked) })
	if t := n.problem.Swap(nil); t != nil && !errors.Is(t.err, errOwnershipUnknown) {
		n.Log.Info("the database serves again")
	}
}

// reportProblem notes what keeps the database from serving; the log goes on meanwhile.
func (n *Node) reportProblem(err error) {
	before := n.problem.Load()
	n.problem.Store(&databaseError{err: err})
	n.checkOnce.Do(func() { close(n.checked) })
	if before == nil || errorText(before.err) != errorText(err) {
		n.Log.Error("the database does not serve", "error", err)
	}
}

// dialedPort is what differs between one try to reach a server and the next.
var dialedPort = regexp.MustCompile(`:\d+->`)

// errorText is an error as it is told once.
func errorText(err error) string { return dialedPort.ReplaceAllString(err.Error(), "->") }

// isShared tells whether other members use the same database.
func (n *Node) isShared() bool {
	self := n.log.Self()
	for _, m := range n.log.Members() {
		if m.ID != self.ID && m.Site == n.Cloud && m.Role != consensus.Witness {
			return true
		}
	}
	return false
}

// applyBatch waits for entries and applies what there is.
func (n *Node) applyBatch(ctx context.Context) error {
	after := n.progress.index()
	entries, err := n.log.Entries(ctx, after+1, maxBatch)
	if err != nil {
		return err
	}
	if first := entries[0].Index; after != 0 && first != after+1 { // a log begins where it begins
		return fmt.Errorf("%w: it gave entry %d after %d", errLog, first, after)
	}
	entries = entries[:min(len(entries), n.stuck.batchLimit())]
	batch := make([]cloudsql.Entry, 0, len(entries))
	for _, e := range entries {
		batch = append(batch, cloudsql.Entry{Index: e.Index, Data: e.Data})
	}
	n.database.Lock()
	defer n.database.Unlock()
	n.store.KeepOutcomes(n.isShared())
	n.store.LimitWeightAfter(n.log.Identity().Since)
	applied, err := n.store.Apply(ctx, n.Name, after, batch)
	if err != nil {
		return n.isolateEntry(ctx, batch, err)
	}
	n.stuck.recordSuccess(len(batch))
	n.progress.recordApplied(after, applied.Index, applied.Results)
	n.log.Tell()
	return nil
}

// readProgress reads how far the database is, and who applied last.
func (n *Node) readProgress(ctx context.Context) (holder string, err error) {
	p, err := n.store.Progress(ctx)
	if err != nil {
		return "", err
	}
	return p.Holder, n.acceptProgress(ctx, p)
}

// isUnreachable tells whether a member is out of this one's reach.
func (n *Node) isUnreachable(name string) bool {
	for _, m := range n.log.Status().Members {
		if m.Name == name {
			return !m.Connected
		}
	}
	return true
}

// rebuildDatabase brings a database that the log no longer reaches to where it does: another
// member may have done so already, or a snapshot of the nearest other one is loaded.
func (n *Node) rebuildDatabase(ctx context.Context, why *consensus.CompactedError) error {
	if _, err := n.readProgress(ctx); err != nil {
		return err
	}
	if n.progress.index()+1 >= why.First {
		return nil
	}
	n.Log.Warn("the log no longer holds what the database lacks", "applied", n.progress.index(), "first", why.First)
	n.rebuilding.Store(true)
	defer n.rebuilding.Store(false)
	_, err := n.log.Fetch(ctx, 0)
	return err
}

// syncDatabase tells the log, at once and again and again, what the database keeps whatever happens,
// and finds out so whether the database is there while there is nothing to apply.
func (n *Node) syncDatabase(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		if n.store.Ready() && n.owned.Load() && !n.rebuilding.Load() {
			bounded, cancel := context.WithTimeout(ctx, syncTimeout)
			before := n.progress.index() // which the database had reached
			index, err := n.store.Sync(bounded)
			cancel()
			if err == nil && index < before {
				// The store tells of a step back once, and somebody who does nothing about it may
				// have been told: a look at the members' addresses, a backup.
				err = fmt.Errorf("%w: from %d to %d", cloudsql.ErrBack, before, index)
			}
			switch {
			case err == nil:
				n.saveTables()
				n.log.Applied(index)
				if n.syncProblem.Swap(nil) != nil {
					n.Log.Info("the database answers again")
				}
			case n.handleStateLoss(err):
			case ctx.Err() == nil && n.syncProblem.Swap(&databaseError{err: err}) == nil:
				n.Log.Warn("the database's state cannot be made safe: the log keeps more", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// An entry that a database cannot take - a trigger, a limit of the server's, a full disk - must not keep
// those before it back, and must be named: a batch that fails on a database that answers is
// halved until the entry stands alone. There the cloud's applier stops and tries again now and
// then; the member says which entry it is, other clouds answer for this one, and it goes on by
// itself when the database takes it.

// stuckEntry is what is known of an entry that the database does not take.
type stuckEntry struct {
	batch int           // the most entries that are applied at once, 0: maxEntries
	index atomic.Uint64 // of the entry, 0 for none
}

// batchLimit is how many entries are applied at once.
func (s *stuckEntry) batchLimit() int {
	if s.batch == 0 {
		return maxEntries
	}
	return s.batch
}

// recordSuccess notes that a batch was applied.
func (s *stuckEntry) recordSuccess(entries int) {
	s.index.Store(0)
	if s.batch != 0 && entries == s.batch {
		if s.batch *= 2; s.batch >= maxEntries {
			s.batch = 0
		}
	}
}

// errBatchHalved says that a part of a batch is to be tried.
var errBatchHalved = errors.New("the batch is tried in parts")

// isolateEntry finds the entry that a batch fails at.
func (n *Node) isolateEntry(ctx context.Context, batch []cloudsql.Entry, err error) error {
	for _, other := range []error{cloudsql.ErrMoved, cloudsql.ErrBack, cloudsql.ErrLog, cloudsql.ErrSilent} {
		if errors.Is(err, other) {
			return err
		}
	}
	if ctx.Err() != nil {
		return err
	}
	if _, down := n.store.Progress(ctx); down != nil {
		return err // it is not the entry
	}
	if len(batch) > 1 {
		n.stuck.batch = len(batch) / 2
		return errBatchHalved
	}
	n.stuck.index.Store(batch[0].Index)
	return fmt.Errorf("entry %d cannot be applied, and so none after it: %w", batch[0].Index, err)
}
