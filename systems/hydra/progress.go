package hydra

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
)

type (
	writer = io.Writer
	reader = io.Reader
)

// recent is how many outcomes a member keeps in memory; the database has older ones.
const recent = 1 << 16

type progress struct {
	mu          sync.Mutex
	applied     uint64
	reached     atomic.Uint64 // copy of applied, read without the lock
	changed     chan struct{} // closed when applied grows
	waiting     int
	waiterAdded chan struct{} // capacity 1: a waiter arrived
	outcomes    map[uint64]command.Outcome
	order       []uint64 // keys of outcomes, a ring
	next        int
	own         uint64 // this member applied the entries in (own, applied]
	forgotten   uint64 // the last entry whose outcome was dropped
}

func (p *progress) init() {
	p.changed, p.waiterAdded = make(chan struct{}), make(chan struct{}, 1)
	p.outcomes = make(map[uint64]command.Outcome)
}

func (p *progress) recordApplied(after, applied uint64, results []cloudsql.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.applied != after {
		p.own = after
	}
	for _, r := range results {
		if r.Conditional || r.Outcome.Code != command.OK {
			p.storeOutcome(r)
		}
	}
	p.publish(applied)
}

// setApplied records the database's applied index, lower than before if the database lost state.
func (p *progress) setApplied(applied uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if applied != p.applied {
		p.own = applied
		p.publish(applied)
	}
}

func (p *progress) publish(applied uint64) {
	if applied != p.applied {
		p.applied = applied
		p.reached.Store(applied)
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// rollBack lowers the index without waking waiters.
func (p *progress) rollBack(applied uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if applied < p.applied {
		p.applied, p.own = applied, min(p.own, applied)
		p.reached.Store(applied)
	}
}

// succeeded reports whether an applied entry without an outcome succeeded: this member applied it, and stores failures.
func (p *progress) succeeded(index uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return index > p.own && index <= p.applied && index > p.forgotten
}

func (p *progress) storeOutcome(r cloudsql.Result) {
	if len(p.order) < recent {
		p.order = append(p.order, r.Index)
	} else {
		p.forgotten = max(p.forgotten, p.order[p.next])
		delete(p.outcomes, p.order[p.next])
		p.order[p.next] = r.Index
		p.next = (p.next + 1) % recent
	}
	p.outcomes[r.Index] = r.Outcome
}

func (p *progress) index() uint64 { return p.reached.Load() }

func (p *progress) findOutcome(index uint64) (command.Outcome, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, ok := p.outcomes[index]
	return o, ok
}

func (p *progress) hasWaiters() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting > 0
}

func (p *progress) wait(ctx context.Context, index uint64) error {
	p.mu.Lock()
	p.waiting++
	defer func() {
		p.waiting--
		p.mu.Unlock()
	}()
	if p.applied < index {
		select {
		case p.waiterAdded <- struct{}{}:
		default: // the previous signal is still pending
		}
	}
	for p.applied < index {
		changed := p.changed
		p.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// followApplier watches another member apply, and returns when this member takes over.
func (n *Node) followApplier(ctx context.Context) error {
	stood, last := time.Now(), n.progress.index()
	var heeded time.Time
	for {
		holder, err := n.readProgress(ctx)
		if err != nil {
			return err
		}
		n.markServing()
		now := n.progress.index()
		if now != last || now >= n.log.Commit() {
			stood, last = time.Now(), now
		}
		still := time.Since(stood)
		if still > takeoverAfter || still > unreachableAfter && n.isUnreachable(holder) || !n.isShared() {
			n.Log.Info("taking over the cloud's database", "applied", now)
			n.applying.Store(true)
			return nil
		}
		if heeded, err = n.awaitNotification(ctx, holder, heeded); err != nil {
			return err
		}
	}
}

// awaitNotification waits until the applied index should be read again: after a notification with
// waiters, or after an interval. heeded is the time of the last subscription.
//
// A notification that arrives without waiters is kept:
//
//  1. The applier reports entry 7; this member has no waiters.
//  2. A read starts that waits for 7. No later batch would cause a notification.
func (n *Node) awaitNotification(ctx context.Context, holder string, heeded time.Time) (time.Time, error) {
	idle := time.NewTimer(n.pace.idle)
	defer idle.Stop()
	told := false
	for {
		hears := time.Since(heeded) < subscribeEvery
		var late <-chan time.Time
		if n.progress.hasWaiters() {
			if !hears && n.log.Subscribe(n.memberID(holder)) {
				heeded = time.Now()
			}
			late = time.After(n.pace.busy)
		}
		select {
		case <-ctx.Done():
			return heeded, ctx.Err()
		case <-n.log.Notified():
			if told = true; n.progress.hasWaiters() {
				return heeded, nil
			}
		case <-n.progress.waiterAdded:
			if told || !hears {
				return heeded, nil
			}
		case <-late:
			return heeded, nil
		case <-idle.C:
			return heeded, nil
		}
	}
}

func (n *Node) memberID(name string) uint64 {
	for _, m := range n.log.Members() {
		if m.Name == name {
			return m.ID
		}
	}
	return 0
}
