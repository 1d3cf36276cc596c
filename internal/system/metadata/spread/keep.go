package spread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"skerry/internal/system/metadata"
)

// Own is a server's own tree with its transactions.
type Own interface {
	Service
	// Transactions are those that are under way; changed is closed when they are others.
	Transactions() (list []metadata.Txn, changed <-chan struct{})
}

// again is when a sweep that failed is tried again.
const again = time.Minute

// Keep ends the transactions that routers have left on the server of a name, and removes
// what they have left there, once it has started and then every hour, until the context
// ends. It may run on each of its replicas.
func (r *Router) Keep(ctx context.Context, name string, own Own, log *slog.Logger) {
	sweep, left := time.Now().Add(r.lease), sightings{}
	// What is there at the start has been there: whether for long, no clock can tell. It gets half
	// a lease, since a router whose requests have died with the process before begins again anyway.
	list, _ := own.Transactions()
	leases := seen(nil, list, time.Now().Add(-r.lease/2))
	for ctx.Err() == nil {
		if time.Until(sweep) <= 0 {
			sweep = time.Now().Add(r.clean(ctx, name, left, log))
		}
		list, changed := own.Transactions()
		wait := time.Until(sweep)
		leases = seen(leases, list, time.Now())
		for _, t := range list {
			rest := r.leaseOf(t) - time.Since(leases[t.Name].at)
			if rest <= 0 {
				if err := r.Settle(ctx, name, t); err == nil {
					continue
				} else if ctx.Err() == nil {
					log.Warn("a transaction is in doubt: what it holds stays locked", "transaction", t.Name, "coordinator", t.Coordinator, "locks", t.Locks, "error", err)
				}
				rest = r.lease / 2
			}
			wait = min(wait, rest)
		}
		again := time.NewTimer(max(wait, time.Millisecond))
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
	}
}

// begun is the last step of a transaction, and when this process saw it first: time.Now has the
// monotonic clock's reading, which is what durations since are of.
type begun struct {
	since uint64
	at    time.Time
}

// seen is when each transaction's lease has begun: as known before, else at a moment.
func seen(before map[string]begun, list []metadata.Txn, at time.Time) map[string]begun {
	now := make(map[string]begun, len(list))
	for _, t := range list {
		b, known := before[t.Name]
		if !known || b.since != t.Since {
			b = begun{t.Since, at}
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

// clean sweeps, and returns the time until the next.
func (r *Router) clean(ctx context.Context, name string, left sightings, log *slog.Logger) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	removed, err := r.sweep(ctx, name, left.old)
	if len(removed) > 0 {
		log.Info("what routers that died had left was removed", "paths", removed)
	}
	if err != nil {
		log.Debug("what routers that died have left cannot be told", "error", err)
		return again
	}
	return Leftover
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
