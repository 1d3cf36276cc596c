package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/linger"
	"skerry/internal/load/audit"
	"skerry/internal/load/mdtest"
)

// beginTreeChange has a worker's ledger know of a change that is about to be sent; what it returns
// must be called with its outcome.
func (w *worker) beginTreeChange(op *mdtest.Op) (ended func(error)) {
	if w.ledger == nil || !op.Kind.Changes() {
		return func(error) {}
	}
	done := w.ledger.Begin(*op)
	return func(err error) {
		switch {
		case err == nil:
			done(mdtest.Acknowledged)
		case classify(err).Outcome == NotDone:
			done(mdtest.Refused)
		default:
			done(mdtest.InDoubt)
		}
	}
}

// saveTreeAudit saves what must be in the tree.
func (d *driver) saveTreeAudit(result *Result) error {
	var ledgers []*mdtest.Ledger
	for _, w := range d.workers {
		ledgers = append(ledgers, w.ledger)
	}
	f, err := os.Create(d.spec.Audit.File)
	if err != nil {
		return fmt.Errorf("keeping what is to be audited: %w", err)
	}
	counts, err := mdtest.SaveClaims(f, ledgers)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keeping what is to be audited: %w", err)
	}
	result.Audited = &AuditCounts{Acknowledged: counts.Acknowledged, InDoubt: counts.InDoubt, Refused: counts.Refused}
	return nil
}

// treeAuditor is an audit phase of a tree under way.
type treeAuditor struct {
	spec  Spec
	done  atomic.Int64
	began time.Time

	mu       sync.Mutex
	suspects []mdtest.Claim // guarded by mu
	held     int64          // guarded by mu
}

// auditTree looks whether what a run phase and its load left is in the tree, and again at
// what is not until it is or has had its time.
func auditTree(ctx context.Context, spec Spec, open OpenClient, onSecond func(Interval)) (Result, error) {
	b := &treeAuditor{spec: spec, began: time.Now()}
	result := AuditResult{Header: audit.Header{Loaded: spec.Tree.Records}}
	stop := reportProgress(&b.done, onSecond)
	err := b.run(ctx, open, &result)
	stop()
	if err != nil {
		return Result{}, fmt.Errorf("looking for what acknowledged changes left: %w", err)
	}
	result.Held, result.Took = b.held, time.Since(b.began)
	return Result{Spec: spec, Started: b.began, Duration: result.Took, Audit: &result, Cores: usableCores()}, nil
}

func (b *treeAuditor) run(ctx context.Context, open OpenClient, result *AuditResult) error {
	if err := b.readAll(ctx, open, result); err != nil {
		return err
	}
	result.Keys = b.done.Load()
	first := b.suspects
	until := time.Now().Add(b.spec.Audit.Settle)
	for wait := firstRecheck; len(b.suspects) > 0 && time.Now().Before(until); wait = min(2*wait, maxRecheckPause) {
		if err := linger.For(ctx, min(wait, time.Until(until))); err != nil {
			return err
		}
		again := b.suspects
		b.suspects = nil
		if err := b.checkClaims(ctx, open, func(look chan<- mdtest.Claim, _ int) error {
			for _, c := range again {
				if err := sendClaim(ctx, look, c); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	result.Stale = int64(len(first) - len(b.suspects))
	return b.conclude(ctx, open, result)
}

// readAll looks at all that must be there, or must not, once.
func (b *treeAuditor) readAll(ctx context.Context, open OpenClient, result *AuditResult) error {
	f, err := b.spec.Audit.system().Open(ctx, b.spec.Audit.File, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	err = b.checkClaims(ctx, open, func(look chan<- mdtest.Claim, areas int) error {
		for n := range b.spec.Tree.Records {
			op := b.spec.Tree.Load(n, areas)
			loaded := mdtest.Entry{Shared: op.Shared, Area: op.Area, Dir: op.Dir, Name: op.Name}
			if err := sendClaim(ctx, look, mdtest.Claim{Entry: loaded, There: true}); err != nil {
				return err
			}
		}
		counts, err := mdtest.ReadClaims(f, func(c mdtest.Claim) error { return sendClaim(ctx, look, c) })
		result.Acknowledged, result.InDoubt, result.Refused = counts.Acknowledged, counts.InDoubt, counts.Refused
		return err
	})
	return err
}

func sendClaim(ctx context.Context, to chan<- mdtest.Claim, c mdtest.Claim) error {
	select {
	case to <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkClaims has threads look at the claims that feed offers for a tree of so many areas.
func (b *treeAuditor) checkClaims(ctx context.Context, open OpenClient, feed func(look chan<- mdtest.Claim, areas int) error) error {
	claims := make(chan mdtest.Claim, auditBatch)
	group, ctx := errgroup.WithContext(ctx)
	areas := make(chan int, b.spec.Threads)
	group.Go(func() error {
		defer close(claims)
		select {
		case n := <-areas:
			return feed(claims, n)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	for range b.spec.Threads {
		group.Go(func() error {
			return withClient(ctx, open, func(c Client) error {
				tree, ok := c.(TreeClient)
				if !ok {
					return fmt.Errorf("%w: the database has no directory tree", ErrSpec)
				}
				areas <- max(1, tree.Areas())
				for claim := range claims {
					there, err := b.claimHolds(ctx, tree, claim)
					if ctx.Err() != nil {
						return ctx.Err()
					}
					b.mu.Lock()
					if err != nil || there != claim.There {
						b.suspects = append(b.suspects, claim)
					} else if there {
						b.held++
					}
					b.mu.Unlock()
					b.done.Add(1)
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// claimHolds tells whether an entry is there.
func (b *treeAuditor) claimHolds(ctx context.Context, tree TreeClient, c mdtest.Claim) (there bool, err error) {
	for try := 1; ; try++ {
		one, cancel := context.WithTimeout(ctx, b.spec.Timeout)
		err = tree.Tree(one, c.Stat())
		cancel()
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, ErrNotFound):
			return false, nil
		case ctx.Err() != nil || try == readAttempts:
			return false, err
		}
		if err := linger.For(ctx, firstBackoff<<try); err != nil {
			return false, err
		}
	}
}

// conclude counts what is wrong in the end.
func (b *treeAuditor) conclude(ctx context.Context, open OpenClient, result *AuditResult) error {
	if len(b.suspects) == 0 {
		return nil
	}
	return withClient(ctx, open, func(c Client) error {
		tree := c.(TreeClient)
		for i, claim := range b.suspects {
			there, err := b.claimHolds(ctx, tree, claim)
			f := Finding{Number: int64(i), Key: claim.String()}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				f.Kind, f.Saw = kindUnread, err.Error()
				result.Unread++
			case there == claim.There:
				result.Stale++
				continue
			case there:
				f.Kind, f.Saw = string(audit.Unexpected), "it is there"
				result.Unexpected++
			default:
				f.Kind, f.Saw = string(audit.Lost), "it is not there"
				result.Lost++
			}
			if len(result.Findings) < MaxFindings {
				result.Findings = append(result.Findings, f)
			}
		}
		return nil
	})
}
