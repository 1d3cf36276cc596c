package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/systems/metadata"
)

// OwnService is a server's own tree with its transactions.
type OwnService interface {
	Service
	// Transactions are those that are under way; changed is closed when they are others.
	Transactions() (list []metadata.Txn, changed <-chan struct{})
}

// sweepRetry is when a sweep that failed is tried again.
const sweepRetry = time.Minute

// RunKeeper ends the transactions that routers have left on the server of a name, and removes
// what they have left there, once it has started and then every hour, until the context
// ends. It may run on each of its replicas.
//
// Nothing that a transaction may hold up keeps it from ending others:
//
//  1. g2 has promised a transaction of g1, and starts again. g1 does not answer, or says that it is under way.
//  2. g2 sweeps: to list its subtrees waits for the transaction, which only the keeper ends, and for 10 s.
//  3. Another transaction, of g3, has no router any more. All that it holds would wait, too.
func (r *Router) RunKeeper(ctx context.Context, name string, own OwnService, log *slog.Logger) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { r.runSweeps(ctx, name, log) })
	// What is there at the start has been there: whether for long, no clock can tell. It gets half
	// a lease, since a router whose requests have died with the process before begins again anyway.
	list, _ := own.Transactions()
	leases := trackLeases(nil, list, time.Now().Add(-r.lease/2))
	ending, ended := make(map[string]bool), make(chan string)
	for {
		list, changed := own.Transactions()
		leases = trackLeases(leases, list, time.Now())
		wait := LeftoverAge
		for _, t := range list {
			rest := r.leaseOf(t) - time.Since(leases[t.Name].at)
			switch {
			case ending[t.Name]:
			case rest > 0:
				wait = min(wait, rest)
			default:
				ending[t.Name] = true
				beside.Go(func() {
					r.endTransaction(ctx, name, t, log)
					select {
					case ended <- t.Name:
					case <-ctx.Done():
					}
				})
			}
		}
		due := time.NewTimer(wait)
		select {
		case <-changed:
		case <-due.C:
		case one := <-ended:
			delete(ending, one)
		case <-ctx.Done():
			due.Stop()
			return
		}
		due.Stop()
	}
}

// endTransaction tries to end a transaction whose lease is over. Where it cannot, it returns when that may be
// tried again.
func (r *Router) endTransaction(ctx context.Context, name string, t metadata.Txn, log *slog.Logger) {
	err := r.Settle(ctx, name, t)
	if err == nil || ctx.Err() != nil {
		return
	}
	log.Warn("a transaction is in doubt: what it holds stays locked", "transaction", t.Name, "coordinator", t.Coordinator, "locks", t.Locks, "error", err)
	_ = linger.For(ctx, r.lease/2) // what ends it ends the keeper
}

// leaseStart is the last step of a transaction, and when this process saw it first: time.Now has the
// monotonic clock's reading, which is what durations since are of.
type leaseStart struct {
	since uint64
	at    time.Time
}

// trackLeases is when each transaction's lease has begun: as known before, else at a moment.
func trackLeases(before map[string]leaseStart, list []metadata.Txn, at time.Time) map[string]leaseStart {
	now := make(map[string]leaseStart, len(list))
	for _, t := range list {
		b, known := before[t.Name]
		if !known || b.since != t.Since {
			b = leaseStart{t.Since, at}
		}
		now[t.Name] = b
	}
	return now
}

// leaseOf is a transaction's lease; one of a snapshot from before they were kept has the router's.
func (r *Router) leaseOf(t metadata.Txn) time.Duration {
	if t.Lease == 0 {
		return r.lease
	}
	return time.Duration(t.Lease)
}

// runSweeps sweeps until the context ends: first when routers of before have given up.
func (r *Router) runSweeps(ctx context.Context, name string, log *slog.Logger) {
	left := sightings{}
	for pause := r.lease; linger.For(ctx, pause) == nil; {
		sweeping, cancel := context.WithTimeout(ctx, r.patience)
		removed, err := r.sweep(sweeping, name, left.isOld)
		cancel()
		if len(removed) > 0 {
			log.Info("what routers that died had left was removed", "paths", removed)
		}
		pause = LeftoverAge
		if err != nil {
			log.Debug("what routers that died have left cannot be told", "error", err)
			pause = sweepRetry
		}
	}
}

// ErrInDoubt means that a server that was to decide on a transaction has not, or cannot be
// asked.
var ErrInDoubt = errors.New("what became of the transaction is not known")

// Settle ends a transaction of the server of a name, whose lease is over.
func (r *Router) Settle(ctx context.Context, name string, t metadata.Txn) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	switch {
	case t.Committed:
		if err := r.finish(ctx, t.Name, t.Servers); err != nil {
			return fmt.Errorf("having the others finish the transaction: %w", err)
		}
		return r.step(ctx, name, metadata.Forget, t.Name).Err
	case t.Coordinator == "":
		return r.resolve(ctx, name, t.Name, t.Since).Err
	}
	answer := r.resolve(ctx, t.Coordinator, t.Name, metadata.AnyEntry)
	switch {
	case answer.Err != nil:
		return fmt.Errorf("asking %s: %w: %w", t.Coordinator, ErrInDoubt, answer.Err)
	case string(answer.Data) == metadata.Committed:
		return r.step(ctx, name, metadata.Finish, t.Name).Err
	case string(answer.Data) == metadata.Aborted:
		return r.step(ctx, name, metadata.Abort, t.Name).Err
	}
	return fmt.Errorf("asking %s: %w: it is under way", t.Coordinator, ErrInDoubt)
}

// LeftoverAge is how old an empty directory of /.subtrees must be to be taken for one that a
// router left which died before anything led there: longer than delegate ever takes. It is
// what Sweep is told, by somebody who knows the clocks. A server that sweeps by itself believes
// none, and takes what it has seen for half of it.
const LeftoverAge = time.Hour

// Sweep removes what routers that died have left on the server of a name, and returns the
// paths of its own tree that it removed:
//
//   - copies in /.incoming, of transactions that no server knows any more;
//   - directories of /.subtrees that are empty, were never moved, are older than a duration,
//     and to which no virtual directory of any server leads.
//
// Where a server cannot be asked, what it may need is left, and its error is returned.
func (r *Router) Sweep(ctx context.Context, name string, older time.Duration) ([]string, error) {
	return r.sweep(ctx, name, func(e metadata.Entry) bool { return time.Since(e.Time()) >= older })
}

// sweep is Sweep of subtrees that are old.
func (r *Router) sweep(ctx context.Context, name string, old func(metadata.Entry) bool) ([]string, error) {
	copies, err := r.sweepIncoming(ctx, name)
	subtrees, failed := r.sweepSubtrees(ctx, name, old)
	return append(copies, subtrees...), errors.Join(err, failed)
}

// sightings are when directories were seen first, by a clock that no setting of the time moves. By
// the time that an entry has
//
//  1. delegate makes a directory of /.subtrees, and is about to have a virtual one lead there;
//  2. the server's clock is set forward by an hour, and the server sweeps;
//  3. the directory is old, and removed: the virtual one leads to nothing.
type sightings map[string]time.Time

// isOld tells whether an entry has been there for half of Leftover.
func (s sightings) isOld(e metadata.Entry) bool {
	if _, seen := s[e.Name]; !seen {
		s[e.Name] = time.Now()
	}
	return time.Since(s[e.Name]) >= LeftoverAge/2
}

func (r *Router) sweepIncoming(ctx context.Context, name string) (removed []string, err error) {
	copies, err := r.listAll(ctx, name, metadata.Incoming)
	for _, e := range copies {
		path := metadata.Join(metadata.Incoming, e.Name) // it is named after its transaction
		over, problem := r.isUnknown(ctx, e.Name)
		if problem == nil && over {
			problem = r.sendOne(ctx, name, removeCommand(path)).Err
		}
		switch {
		case problem != nil:
			err = errors.Join(err, fmt.Errorf("removing %s of %s: %w", path, name, problem))
		case over:
			removed = append(removed, path)
		}
	}
	return removed, err
}

// isUnknown tells whether no server knows a transaction: who wants to go on with it is refused.
func (r *Router) isUnknown(ctx context.Context, txn string) (bool, error) {
	for _, server := range slices.Sorted(maps.Keys(r.servers.Service)) {
		answer := r.resolve(ctx, server, txn, metadata.AnyEntry)
		switch {
		case errors.Is(answer.Err, metadata.ErrInvalid): // it has promised, and another one decides
			return false, nil
		case answer.Err != nil:
			return false, fmt.Errorf("asking %s: %w", server, answer.Err)
		case string(answer.Data) != metadata.Aborted:
			return false, nil
		}
	}
	return true, nil
}

func (r *Router) sweepSubtrees(ctx context.Context, name string, old func(metadata.Entry) bool) (removed []string, err error) {
	subtrees, err := r.listAll(ctx, name, metadata.Subtrees)
	var left []metadata.Subtree
	for _, e := range subtrees {
		sub, ok := metadata.ParseBase(metadata.Join(metadata.Subtrees, e.Name))
		if ok && sub.Epoch == 0 && e.Kind == metadata.Directory && e.Size == 0 && old(e) {
			sub.Server = name
			left = append(left, sub)
		}
	}
	// A search is of no moment: what is moved meanwhile may not be seen. So there are two.
	for range 2 {
		for server := range r.servers.Service {
			if err != nil || len(left) == 0 {
				return nil, err
			}
			var named map[string]bool
			if named, err = r.listOwners(ctx, server); err != nil {
				return nil, fmt.Errorf("asking %s what leads to subtrees: %w", server, err)
			}
			left = slices.DeleteFunc(left, func(s metadata.Subtree) bool { return named[s.Owner()] })
		}
	}
	for _, sub := range left {
		gone := r.sendOne(ctx, name, metadata.Command{Op: metadata.Rmdir, Path: sub.Base(), MaxDepth: -1})
		switch {
		case gone.Err == nil:
			removed = append(removed, sub.Base())
		case !errors.Is(gone.Err, metadata.ErrNotFound) && !errors.Is(gone.Err, metadata.ErrNotEmpty):
			err = errors.Join(err, fmt.Errorf("removing %s of %s: %w", sub.Base(), name, gone.Err))
		}
	}
	return removed, err
}

// listAll are those of a directory that a server may not have.
func (r *Router) listAll(ctx context.Context, server, dir string) (all []metadata.Entry, err error) {
	page := metadata.Command{Op: metadata.List, Path: dir, Long: true, Limit: metadata.MaxLimit, MaxDepth: -1}
	for {
		listed := r.sendOne(ctx, server, page)
		if errors.Is(listed.Err, metadata.ErrNotFound) {
			return all, nil
		}
		if listed.Err != nil {
			return all, fmt.Errorf("listing %s of %s: %w", dir, server, listed.Err)
		}
		all = append(all, listed.Entries...)
		if page.After = listed.Next; page.After == "" {
			return all, nil
		}
	}
}

// listOwners are those of all virtual directories of a server.
func (r *Router) listOwners(ctx context.Context, server string) (map[string]bool, error) {
	all := make(map[string]bool)
	page := metadata.Command{Op: metadata.Find, Path: "/", Kind: metadata.Virtual, Limit: metadata.MaxLimit, MaxDepth: -1}
	for {
		found := r.sendOne(ctx, server, page)
		if found.Err != nil {
			return nil, found.Err
		}
		for _, e := range found.Entries {
			sub, _ := metadata.ParseSubtree(e.Owner)
			for _, part := range sub.Parts() {
				all[part.Owner()] = true
			}
		}
		if page.After = found.Next; page.After == "" {
			return all, nil
		}
	}
}
