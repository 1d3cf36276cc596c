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
	// maxBatch (bytes) and maxEntries bound one SQL transaction. Longer transactions delay readers of fresh rows.
	maxBatch   = 4 << 20
	maxEntries = 4096
	// takeoverAfter is how long an applied index may stand still before another member applies. A wrong guess costs time only.
	takeoverAfter = time.Second
	// unreachableAfter replaces takeoverAfter if the applier is unreachable.
	unreachableAfter = 30 * time.Millisecond
	// followIdle and followBusy are the poll intervals of a follower. The applier notifies followers with waiters, too.
	followIdle = 50 * time.Millisecond
	followBusy = 20 * time.Millisecond
	// subscribeEvery is how often a follower renews its subscription, which lasts twice as long.
	subscribeEvery = 500 * time.Millisecond
	retryLeast     = 100 * time.Millisecond
	retryMost      = 2 * time.Second
	syncEvery      = time.Second
	syncTimeout    = 10 * time.Second
)

var errLog = errors.New("log has a gap")

func (n *Node) applyLoop(all context.Context) {
	pause := retryLeast
	ctx, stop := context.WithCancel(all)
	defer func() { stop() }()
	n.cancelApply.Store(&stop)
	for all.Err() == nil {
		if ctx.Err() != nil { // interrupted: start over with a new context
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

func (n *Node) pause(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-n.log.Done():
		return false
	case <-time.After(pause):
	}
	return true
}

func (n *Node) chooseApplier(holder string) {
	n.applying.Store(holder == "" || holder == n.Name || !n.isShared())
}

// prepareDatabase checks a database that was unreachable at the start, belonged to another log, or went back.
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

func (n *Node) markServing() {
	n.checkOnce.Do(func() { close(n.checked) })
	if t := n.problem.Swap(nil); t != nil && !errors.Is(t.err, errOwnershipUnknown) {
		n.Log.Info("the database serves again")
	}
}

func (n *Node) reportProblem(err error) {
	before := n.problem.Load()
	n.problem.Store(&databaseError{err: err})
	n.checkOnce.Do(func() { close(n.checked) })
	if before == nil || errorText(before.err) != errorText(err) {
		n.Log.Error("the database does not serve", "error", err)
	}
}

// dialedPort matches the local port in a dial error, which differs between attempts.
var dialedPort = regexp.MustCompile(`:\d+->`)

func errorText(err error) string { return dialedPort.ReplaceAllString(err.Error(), "->") }

func (n *Node) isShared() bool {
	self := n.log.Self()
	for _, m := range n.log.Members() {
		if m.ID != self.ID && m.Site == n.Cloud && m.Role != consensus.Witness {
			return true
		}
	}
	return false
}

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
	applied, err := n.store.Apply(ctx, n.Name, after, batch)
	if err != nil {
		return n.isolateEntry(ctx, batch, err)
	}
	n.stuck.recordSuccess(len(batch))
	n.progress.recordApplied(after, applied.Index, applied.Results)
	n.log.NotifySubscribers()
	return nil
}

func (n *Node) readProgress(ctx context.Context) (holder string, err error) {
	p, err := n.store.Progress(ctx)
	if err != nil {
		return "", err
	}
	return p.Holder, n.acceptProgress(ctx, p)
}

func (n *Node) isUnreachable(name string) bool {
	for _, m := range n.log.Status().Members {
		if m.Name == name {
			return !m.Connected
		}
	}
	return true
}

// rebuildDatabase loads a snapshot from the nearest member if the log lacks the next entry and no member has done so.
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

// syncDatabase periodically reports the durable index to the log, and detects an unreachable database.
func (n *Node) syncDatabase(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		if n.store.Ready() && n.owned.Load() && !n.rebuilding.Load() {
			bounded, cancel := context.WithTimeout(ctx, syncTimeout)
			before := n.progress.index()
			index, err := n.store.Sync(bounded)
			cancel()
			if err == nil && index < before {
				// The store reports a step back once, possibly to a caller that ignores it.
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

// An entry that a database rejects (a trigger, a server limit, a full disk) must not hold back the entries before it,
// and the status must name it. A failed batch is halved until the entry stands alone. The applier then retries that
// entry, and members of other clouds answer this cloud's clients until the database accepts it.

type stuckEntry struct {
	batch int           // entries per batch, 0: maxEntries
	index atomic.Uint64 // 0: none
}

func (s *stuckEntry) batchLimit() int {
	if s.batch == 0 {
		return maxEntries
	}
	return s.batch
}

func (s *stuckEntry) recordSuccess(entries int) {
	s.index.Store(0)
	if s.batch != 0 && entries == s.batch {
		if s.batch *= 2; s.batch >= maxEntries {
			s.batch = 0
		}
	}
}

var errBatchHalved = errors.New("batch was halved")

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
		return err // the database failed, not the entry
	}
	if len(batch) > 1 {
		n.stuck.batch = len(batch) / 2
		return errBatchHalved
	}
	n.stuck.index.Store(batch[0].Index)
	return fmt.Errorf("entry %d cannot be applied, and so none after it: %w", batch[0].Index, err)
}
