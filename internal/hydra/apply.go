package hydra

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"skerry/internal/consensus"
	"skerry/internal/hydra/store"
)

const (
	// maxBatch is the most bytes of entries, maxEntries the most of them, that are applied
	// in one SQL transaction: what a database commits at once without making readers of
	// fresh rows wait long.
	maxBatch   = 4 << 20
	maxEntries = 4096
	// takeover is how long a cloud's index stands still, with entries to apply, before
	// another member applies them. Only time is lost by a wrong guess.
	takeover = time.Second
	// abandoned is the same where the member that applies is out of reach.
	abandoned = 30 * time.Millisecond
	// followBusy and followIdle are how often a member that does not apply asks how far
	// the database is: while somebody waits for it, and otherwise.
	followBusy = 3 * time.Millisecond
	followIdle = 50 * time.Millisecond
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

// apply applies the log until ctx ends. holder is who applied last.
func (n *Node) apply(ctx context.Context, holder string) {
	pause := retryLeast
	n.lead.Store(holder == "" || holder == n.Name || !n.shared())
	for ctx.Err() == nil {
		var err error
		if !n.store.Ready() {
			err = n.reach(ctx)
		} else if n.lead.Load() {
			err = n.applySome(ctx)
		} else {
			err = n.follow(ctx)
		}
		var compacted *consensus.CompactedError
		switch {
		case err == nil:
			pause = retryLeast
			n.healed()
			continue
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrMoved):
			n.lead.Store(!n.shared())
			before := n.progress.at()
			if _, failed := n.look(ctx); failed != nil || n.progress.at() != before {
				err = failed
			}
		case errors.As(err, &compacted):
			err = n.rebuild(ctx, compacted)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		n.report(err)
		select {
		case <-ctx.Done():
		case <-n.log.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, retryMost)
	}
}

// reach tries to reach a database that was away when the member started.
func (n *Node) reach(ctx context.Context) error {
	if err := n.store.Prepare(ctx); err != nil {
		return err
	}
	holder, err := n.look(ctx)
	if err != nil {
		return err
	}
	n.lead.Store(holder == "" || holder == n.Name || !n.shared())
	return nil
}

// healed notes that the database serves.
func (n *Node) healed() {
	if n.problem.Swap(nil) != nil {
		n.Log.Info("the database serves again")
	}
}

// report notes what keeps the database from serving; the log goes on meanwhile.
func (n *Node) report(err error) {
	before := n.problem.Load()
	n.problem.Store(&trouble{err: err})
	if before == nil || text(before.err) != text(err) {
		n.Log.Error("the database does not serve", "error", err)
	}
}

// port is what differs between one try to reach a server and the next.
var port = regexp.MustCompile(`:\d+->`)

// text is an error as it is told once.
func text(err error) string { return port.ReplaceAllString(err.Error(), "->") }

// shared tells whether other members use the same database.
func (n *Node) shared() bool {
	self := n.log.Self()
	for _, m := range n.log.Members() {
		if m.ID != self.ID && m.Site == n.Cloud && m.Role != consensus.Witness {
			return true
		}
	}
	return false
}

// applySome waits for entries and applies what there is.
func (n *Node) applySome(ctx context.Context) error {
	after := n.progress.at()
	entries, err := n.log.Entries(ctx, after+1, maxBatch)
	if err != nil {
		return err
	}
	if first := entries[0].Index; after != 0 && first != after+1 { // a log begins where it begins
		return fmt.Errorf("%w: it gave entry %d after %d", errLog, first, after)
	}
	batch := make([]store.Entry, 0, min(len(entries), maxEntries))
	for _, e := range entries[:min(len(entries), maxEntries)] {
		batch = append(batch, store.Entry{Index: e.Index, Data: e.Data})
	}
	n.database.Lock()
	defer n.database.Unlock()
	n.store.KeepOutcomes(n.shared())
	results, err := n.store.Apply(ctx, n.Name, after, batch)
	if err != nil {
		return err
	}
	n.progress.advance(batch[len(batch)-1].Index, results)
	return nil
}

// look reads how far the database is, and who applied last.
func (n *Node) look(ctx context.Context) (holder string, err error) {
	p, err := n.store.Progress(ctx)
	if err != nil {
		return "", err
	}
	n.progress.advance(p.Applied, nil)
	return p.Holder, nil
}

// away tells whether a member is out of this one's reach.
func (n *Node) away(name string) bool {
	for _, m := range n.log.Status().Members {
		if m.Name == name {
			return !m.Connected
		}
	}
	return true
}

// follow watches another member apply, and returns when it is this one's turn.
func (n *Node) follow(ctx context.Context) error {
	stood, last := time.Now(), n.progress.at()
	for {
		holder, err := n.look(ctx)
		if err != nil {
			return err
		}
		n.healed()
		now := n.progress.at()
		if now != last || now >= n.log.Commit() {
			stood, last = time.Now(), now
		}
		still := time.Since(stood)
		if still > takeover || still > abandoned && n.away(holder) || !n.shared() {
			n.Log.Info("taking over the cloud's database", "applied", now)
			n.lead.Store(true)
			return nil
		}
		every := followIdle
		if n.progress.awaited() {
			every = followBusy
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.progress.asked: // idleness is over
		case <-time.After(every):
		}
	}
}

// rebuild brings a database that the log no longer reaches to where it does: another
// member may have done so already, or a snapshot of the nearest other one is loaded.
func (n *Node) rebuild(ctx context.Context, why *consensus.CompactedError) error {
	if _, err := n.look(ctx); err != nil {
		return err
	}
	if n.progress.at()+1 >= why.First {
		return nil
	}
	n.Log.Warn("the log no longer holds what the database lacks", "applied", n.progress.at(), "first", why.First)
	n.rebuilding.Store(true)
	defer n.rebuilding.Store(false)
	_, err := n.log.Fetch(ctx, 0)
	return err
}

// sync tells the log, at once and again and again, what the database keeps whatever happens,
// and finds out so whether the database is there while there is nothing to apply.
func (n *Node) sync(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		if n.store.Ready() && !n.rebuilding.Load() {
			bounded, cancel := context.WithTimeout(ctx, syncTimeout)
			index, err := n.store.Sync(bounded)
			cancel()
			switch {
			case err == nil:
				n.log.Applied(index)
				if n.silent.Swap(nil) != nil {
					n.Log.Info("the database answers again")
				}
			case ctx.Err() == nil && n.silent.Swap(&trouble{err: err}) == nil:
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
