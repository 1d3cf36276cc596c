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

// beginTreeChange enters a change in the worker's ledger before it is sent. The returned function
// must be called with its outcome.
func (w *worker) beginTreeChange(op *mdtest.Op) (ended func(error)) {
	if w.ledger == nil || !op.Kind.Changes() {
		return func(error) {}
	}
	done := w.ledger.Begin(*op)
	return func(err error) { done(auditOutcome(err)) }
}

func (d *driver) saveTreeAudit(result *Result) error {
	var ledgers []*mdtest.TreeLedger
	for _, w := range d.workers {
		ledgers = append(ledgers, w.ledger)
	}
	f, err := os.Create(d.spec.Audit.File)
	if err != nil {
		return fmt.Errorf("save the audit: %w", err)
	}
	counts, err := mdtest.SaveClaims(f, ledgers)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("save the audit: %w", err)
	}
	result.Audited = &counts
	return nil
}

type treeAuditor struct {
	spec  Spec
	done  atomic.Int64
	began time.Time

	mu       sync.Mutex
	suspects []mdtest.Claim // guarded by mu
	held     int64          // guarded by mu
}

// auditTree checks the entries that the load and run phases left. It repeats failed checks until
// they succeed or Settle has passed.
func auditTree(ctx context.Context, spec Spec, open OpenClient, onSecond func(Interval)) (Result, error) {
	b := &treeAuditor{spec: spec, began: time.Now()}
	result := AuditResult{Header: audit.Header{Loaded: spec.Tree.Records}}
	stop := reportProgress(&b.done, onSecond)
	err := b.run(ctx, open, &result)
	stop()
	if err != nil {
		return Result{}, fmt.Errorf("audit acknowledged changes: %w", err)
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
		suspects := b.suspects
		b.suspects = nil
		err := b.checkClaims(ctx, open, func(claims chan<- mdtest.Claim, _ int) error {
			return sendClaims(ctx, claims, suspects...)
		})
		if err != nil {
			return err
		}
	}
	result.Stale = int64(len(first) - len(b.suspects))
	return b.conclude(ctx, open, result)
}

func (b *treeAuditor) readAll(ctx context.Context, open OpenClient, result *AuditResult) error {
	f, err := b.spec.Audit.system().Open(ctx, b.spec.Audit.File, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.checkClaims(ctx, open, func(claims chan<- mdtest.Claim, areas int) error {
		for n := range b.spec.Tree.Records {
			op := b.spec.Tree.Load(n, areas)
			loaded := mdtest.Entry{Shared: op.Shared, Area: op.Area, Dir: op.Dir, Name: op.Name}
			if err := sendClaims(ctx, claims, mdtest.Claim{Entry: loaded, There: true}); err != nil {
				return err
			}
		}
		counts, err := mdtest.ReadClaims(f, func(c mdtest.Claim) error { return sendClaims(ctx, claims, c) })
		result.Counts = counts
		return err
	})
}

func sendClaims(ctx context.Context, to chan<- mdtest.Claim, claims ...mdtest.Claim) error {
	for _, c := range claims {
		select {
		case to <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// checkClaims checks the claims that feed sends, with all threads. feed gets the number of areas of
// the tree.
func (b *treeAuditor) checkClaims(ctx context.Context, open OpenClient, feed func(claims chan<- mdtest.Claim, areas int) error) error {
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
	startClients(ctx, group, b.spec.Threads, open, func(c Client) error {
		tree, ok := c.(TreeClient)
		if !ok {
			return fmt.Errorf("%w: the database has no directory tree", errSpec)
		}
		areas <- max(1, tree.Areas())
		for claim := range claims {
			if err := b.checkClaim(ctx, tree, claim); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// checkClaim checks one claim and keeps a false one as a suspect. It returns an error only if ctx ends.
func (b *treeAuditor) checkClaim(ctx context.Context, tree TreeClient, claim mdtest.Claim) error {
	exists, err := b.exists(ctx, tree, claim)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done.Add(1)
	if err != nil || exists != claim.There {
		b.suspects = append(b.suspects, claim)
	} else if exists {
		b.held++
	}
	return nil
}

func (b *treeAuditor) exists(ctx context.Context, tree TreeClient, c mdtest.Claim) (bool, error) {
	err := retryRead(ctx, b.spec.Timeout, func(ctx context.Context) error { return tree.Tree(ctx, c.Stat()) })
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (b *treeAuditor) conclude(ctx context.Context, open OpenClient, result *AuditResult) error {
	if len(b.suspects) == 0 {
		return nil
	}
	return withClient(ctx, open, func(c Client) error {
		tree := c.(TreeClient)
		for i, claim := range b.suspects {
			exists, err := b.exists(ctx, tree, claim)
			f := Finding{Number: int64(i), Key: claim.String()}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				f.Kind, f.Saw = kindUnread, err.Error()
				result.Unread++
			case exists == claim.There:
				result.Stale++
				continue
			case exists:
				f.Kind, f.Saw = string(audit.Unexpected), "exists"
				result.Unexpected++
			default:
				f.Kind, f.Saw = string(audit.Lost), "missing"
				result.Lost++
			}
			if len(result.Findings) < maxFindings {
				result.Findings = append(result.Findings, f)
			}
		}
		return nil
	})
}
