package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// A move of a slot must end with one master that serves it with all acknowledged writes.
// Redis' MIGRATE moves keys of one slot at a time and blocks the server for a round trip to
// the target. Every non-empty slot then costs a round trip of standstill. The mover here
// copies hundreds of slots at a time while the source serves them. A script then compares
// each slot with its copy and hands it over:
//
//	source (at its node)                     target
//	  read keys and values  ── IMPORTING, ──►  copies, hidden from clients
//	     │                     RESTORE
//	     ▼
//	  script, for each slot: are keys and values equal to the copy?
//	     yes: MIGRATING, delete them           ASK redirects clients to the target,
//	     │    in one atomic step               which has all records
//	     no:  copy that slot again
//	     ▼
//	  SETSLOT NODE             ◄── NODE ───    owns the slot, and informs all members
//
// Invariant: at every step, each slot is in one of three states that serve all its records.
// The source serves it and the copies are hidden; or it is handed over and clients are
// redirected; or the move is complete. repair completes or undoes interrupted moves.
//
// The mover runs at the source, so that values cross the link to the target once, as with
// MIGRATE. The size of a read is bounded by the time that it blocks the source. MIGRATE
// moves a slot whose records still change after copyTries copies.
const (
	// linkTimeout bounds one request to a server over a link of the lab.
	linkTimeout = 30 * time.Second
	// lanes is the number of concurrent batches between one source and one target.
	lanes = 4
	// copyTries is the number of copies of a slot before MIGRATE moves it.
	copyTries = 6
	// connectTrips are the round trips of a first request: connection, name and request.
	connectTrips = 3
	// maxSlots is the maximum number of slots in a batch.
	maxSlots = 256
	// maxScriptKeys bounds the keys in a script. Each key blocks the server for about 15 us.
	maxScriptKeys = 300
)

// executePlan executes all transfers concurrently, and returns the moved bytes.
func (c *cluster) executePlan(ctx context.Context, masters []view, plan []transfer) (int64, error) {
	for _, v := range masters {
		if v.self.countMoves() > 0 {
			// The owner of a slot that was handed over no longer has its records.
			return 0, fmt.Errorf("%w at %s", errOpenSlots, v.host.Name())
		}
	}
	if err := c.awaitEpochs(ctx); err != nil {
		return 0, err
	}
	var bytes atomic.Int64
	sources := make(map[int]*source)
	defer func() {
		for _, src := range sources {
			src.Close()
		}
	}()
	for _, t := range plan {
		if sources[t.from] == nil {
			src, err := c.openSource(ctx, masters[t.from])
			if err != nil {
				return 0, err
			}
			sources[t.from] = src
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, t := range plan {
		s := &stream{source: sources[t.from], to: masters[t.to], bytes: &bytes, atOnce: c.kind.claimsAtOnce(masters[t.to])}
		g.Go(func() error {
			s.target = s.to.openChanger(s.from.host)
			defer s.target.Close()
			if err := s.moveSlots(gctx, t.slots); err != nil {
				return fmt.Errorf("moving slots from %s to %s: %w", s.from.host.Name(), s.to.host.Name(), err)
			}
			return nil
		})
	}
	err := g.Wait()
	return bytes.Load(), err
}

type source struct {
	*goredis.Client // at its own node
	from            view
	scripted        bool // whether the script can hand slots over
	pace            pace
	one             sync.Mutex // held while MIGRATE blocks the source
}

// openSource connects to a source and loads the script, except on Redis before version 7, which has no
// PEXPIRETIME, and on Valkey masters with replicas, where SETSLOT waits.
func (c *cluster) openSource(ctx context.Context, from view) (*source, error) {
	src := &source{Client: from.openChanger(from.host), from: from, scripted: true}
	if c.kind.ackedSlots && len(from.replicas()) > 0 || c.kind.name == Name && major(c.Env.Installation.Version) < 7 {
		src.scripted = false
		return src, nil
	}
	if err := src.ScriptLoad(ctx, handOverScript).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("loading the script on %s: %w", from.host.Name(), err), src.Close())
	}
	return src, nil
}

type stream struct {
	*source
	to     view
	target *goredis.Client // from the source's node, over the link between them
	bytes  *atomic.Int64
	atOnce bool // whether the target claims many slots in one transaction
}

func (s *stream) moveSlots(ctx context.Context, slots []int) error {
	began := time.Now()
	if err := s.target.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("connecting to the target: %w", err)
	}
	s.pace.setRoundTrip(time.Since(began) / connectTrips)
	q := newQueue(slots)
	g, gctx := errgroup.WithContext(ctx)
	for range lanes {
		g.Go(func() error {
			for {
				jobs, err := q.popJobs(gctx, maxSlots)
				if err != nil || len(jobs) == 0 {
					return err
				}
				b, err := s.readBatch(gctx, q, jobs)
				if err != nil {
					return err
				}
				if err := s.moveBatch(gctx, q, b); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func (s *stream) moveBatch(ctx context.Context, q *queue, b batch) error {
	if err := s.copyBatch(ctx, b); err != nil {
		return err
	}
	over, err := s.handOverSlots(ctx, q, b.copies)
	if err != nil {
		return err
	}
	if err := s.assignSlots(ctx, over); err != nil {
		return err
	}
	if err := s.migrateSlots(ctx, b.slow); err != nil {
		return err
	}
	q.complete(len(over) + len(b.slow))
	return nil
}

type job struct {
	slot  int
	tries int      // failed copies
	stale []string // keys on the target from the last failed copy
}

// queue holds the jobs of a stream. Lanes may requeue jobs.
type queue struct {
	mu      sync.Mutex
	jobs    []job
	open    int           // unfinished jobs
	changed chan struct{} // closed and replaced when jobs return or all are complete
}

func newQueue(slots []int) *queue {
	q := &queue{open: len(slots), changed: make(chan struct{})}
	for _, s := range slots {
		q.jobs = append(q.jobs, job{slot: s})
	}
	return q
}

// popJobs removes up to n jobs, or waits for requeued ones. It returns none when all jobs are complete.
func (q *queue) popJobs(ctx context.Context, n int) ([]job, error) {
	for {
		q.mu.Lock()
		n, open, news := min(n, len(q.jobs)), q.open, q.changed
		taken := q.jobs[:n:n]
		q.jobs = q.jobs[n:]
		q.mu.Unlock()
		if n > 0 || open == 0 {
			return taken, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (q *queue) requeue(jobs ...job) {
	if len(jobs) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, jobs...)
	q.notify()
}

func (q *queue) complete(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open -= n; q.open == 0 {
		q.notify()
	}
}

func (q *queue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// pace adapts the number of keys per batch to the time for which the source may be blocked.
type pace struct {
	mu     sync.Mutex
	keys   float64
	budget time.Duration
}

const (
	// minBudget is the time that one batch may block a source, or 1/budgetShare of the round trip to the target if
	// that is longer.
	minBudget   = 3 * time.Millisecond
	budgetShare = 20
	// maxBatch bounds the bytes of a batch, which delay other packets in the link's queue.
	maxBatch = 256 << 10
	// firstKeys is the initial number of keys in a batch; minKeys and maxKeys bound it.
	firstKeys, minKeys, maxKeys = 64, 16, 512
)

// setRoundTrip raises the budget for a distant target.
func (p *pace) setRoundTrip(roundTrip time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == 0 {
		p.keys, p.budget = firstKeys, minBudget
	}
	p.budget = max(p.budget, roundTrip/budgetShare)
}

func (p *pace) limit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.keys)
}

// adjust moves half of the way to the number of keys that fits the budget.
func (p *pace) adjust(keys, bytes int, long time.Duration) {
	if keys == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fits := float64(keys) * min(float64(p.budget)/float64(max(long, 1)), maxBatch/float64(max(bytes, 1)))
	p.keys = min(max((p.keys+fits)/2, minKeys), maxKeys)
}
