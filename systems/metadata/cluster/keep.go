package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
