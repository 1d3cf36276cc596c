package cluster

import (
	"cmp"
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
	metadata.Service
	// Transactions returns the unfinished transactions. changed is closed when they change.
	Transactions() (list []metadata.Txn, changed <-chan struct{})
}

const sweepRetry = time.Minute

// RunKeeper ends the transactions that routers left on server name. It also removes what routers left there, one lease
// after the start and then hourly. It runs until the context ends, and may run on every replica of the server.
//
// A transaction in doubt does not delay the end of others. Otherwise this could happen:
//
//  1. g2 is prepared in a transaction of g1, and restarts. g1 does not answer.
//  2. g2 sweeps. Listing its subtrees waits 10 s for the transaction, which only the keeper ends.
//  3. The router of another transaction, of g3, has died. All its locks would last as long.
func (r *Router) RunKeeper(ctx context.Context, name string, own OwnService, log *slog.Logger) {
	var workers sync.WaitGroup
	defer workers.Wait()
	workers.Go(func() { r.runSweeps(ctx, name, log) })
	// No clock knows how old these transactions are. They get half a lease: a router whose requests died with the process
	// begins again anyway.
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
				workers.Go(func() {
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

// endTransaction tries to end a transaction with an expired lease. On failure it returns when the next attempt is due.
func (r *Router) endTransaction(ctx context.Context, name string, t metadata.Txn, log *slog.Logger) {
	err := r.Settle(ctx, name, t)
	if err == nil || ctx.Err() != nil {
		return
	}
	log.Warn("transaction is in doubt, its locks stay", "transaction", t.Name, "coordinator", t.Coordinator, "locks", t.Locks, "error", err)
	_ = linger.For(ctx, r.lease/2) // cancelled with the keeper
}

// leaseStart is the last step of a transaction, and when this process first saw that step. The time has a monotonic clock
// reading.
type leaseStart struct {
	since uint64
	at    time.Time
}

// trackLeases returns the start of each transaction's lease: as before, or at for a new step.
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

// leaseOf returns a transaction's lease. Transactions in old snapshots have none recorded, and use the router's.
func (r *Router) leaseOf(t metadata.Txn) time.Duration {
	return cmp.Or(time.Duration(t.Lease), r.lease)
}

// runSweeps sweeps until the context ends. The first sweep waits until the leases of earlier routers have expired.
func (r *Router) runSweeps(ctx context.Context, name string, log *slog.Logger) {
	left := sightings{}
	for pause := r.lease; linger.For(ctx, pause) == nil; {
		sweeping, cancel := context.WithTimeout(ctx, r.patience)
		removed, err := r.sweep(sweeping, name, left.isOld)
		cancel()
		if len(removed) > 0 {
			log.Info("removed leftovers of dead routers", "paths", removed)
		}
		pause = LeftoverAge
		if err != nil {
			log.Debug("cannot look for leftovers of dead routers", "error", err)
			pause = sweepRetry
		}
	}
}

// ErrInDoubt means that a transaction's coordinator has not decided or is unreachable.
var ErrInDoubt = errors.New("outcome of the transaction is unknown")

// Settle ends a transaction of server name whose lease has expired.
func (r *Router) Settle(ctx context.Context, name string, t metadata.Txn) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	switch {
	case t.Committed:
		if err := r.finish(ctx, t.Name, t.Servers); err != nil {
			return fmt.Errorf("finishing the transaction on the other servers: %w", err)
		}
		return r.step(ctx, name, metadata.Forget, t.Name).Err
	case t.Coordinator == "":
		return r.resolve(ctx, name, t.Name, t.Since).Err
	}
	answer := r.resolve(ctx, t.Coordinator, t.Name, metadata.AnyEntry)
	switch {
	case answer.Err != nil:
		return fmt.Errorf("querying %s: %w: %w", t.Coordinator, ErrInDoubt, answer.Err)
	case string(answer.Data) == metadata.Committed:
		return r.step(ctx, name, metadata.Finish, t.Name).Err
	case string(answer.Data) == metadata.Aborted:
		return r.step(ctx, name, metadata.Abort, t.Name).Err
	}
	return fmt.Errorf("querying %s: %w: still pending", t.Coordinator, ErrInDoubt)
}

// LeftoverAge is the age from which Sweep treats an empty directory of /.subtrees as abandoned by a router that died
// before linking it. It is much longer than any delegate. An operator who runs Sweep vouches for the clocks. A server's
// own sweeps trust no wall clock: they require that the server has seen the directory for half of LeftoverAge.
const LeftoverAge = time.Hour

// Sweep removes what dead routers left on server name, and returns the removed paths in its own tree:
//
//   - copies in /.incoming whose transaction no server knows
//   - directories of /.subtrees that are empty, were never moved, are older than older, and to which no virtual
//     directory of any server leads
//
// If a server is unreachable, Sweep keeps everything that the server may need, and returns its error.
func (r *Router) Sweep(ctx context.Context, name string, older time.Duration) ([]string, error) {
	return r.sweep(ctx, name, func(e metadata.Entry) bool { return time.Since(e.Time()) >= older })
}

func (r *Router) sweep(ctx context.Context, name string, old func(metadata.Entry) bool) ([]string, error) {
	copies, err := r.sweepIncoming(ctx, name)
	subtrees, failed := r.sweepSubtrees(ctx, name, old)
	return append(copies, subtrees...), errors.Join(err, failed)
}

// sightings are the times at which directories were first seen, on the monotonic clock. The modification time is not
// enough:
//
//  1. delegate creates a directory in /.subtrees, and is about to link a virtual directory to it.
//  2. The server's clock jumps forward by an hour, and the server sweeps.
//  3. The directory looks old and is removed. The virtual directory leads nowhere.
type sightings map[string]time.Time

func (s sightings) isOld(e metadata.Entry) bool {
	if _, seen := s[e.Name]; !seen {
		s[e.Name] = time.Now()
	}
	return time.Since(s[e.Name]) >= LeftoverAge/2
}

func (r *Router) sweepIncoming(ctx context.Context, name string) (removed []string, err error) {
	copies, err := r.listAll(ctx, name, metadata.Incoming)
	for _, e := range copies {
		path := metadata.Join(metadata.Incoming, e.Name) // a copy is named after its transaction
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

func (r *Router) isUnknown(ctx context.Context, txn string) (bool, error) {
	for _, server := range slices.Sorted(maps.Keys(r.servers.Service)) {
		answer := r.resolve(ctx, server, txn, metadata.AnyEntry)
		switch {
		case errors.Is(answer.Err, metadata.ErrInvalid): // prepared, and another server decides
			return false, nil
		case answer.Err != nil:
			return false, fmt.Errorf("querying %s: %w", server, answer.Err)
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
	// A search shows no single moment and can miss a subtree that moves. Two searches are enough.
	for range 2 {
		for server := range r.servers.Service {
			if err != nil || len(left) == 0 {
				return nil, err
			}
			var named map[string]bool
			if named, err = r.listOwners(ctx, server); err != nil {
				return nil, fmt.Errorf("listing the virtual directories of %s: %w", server, err)
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
