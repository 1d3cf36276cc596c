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

// Moving a slot must end with one master that serves it and all writes that any client
// was told of. Redis' MIGRATE does that key by key: it stops the server for a round trip
// to the other one, takes keys of one slot at a time, and so needs a round trip, of
// standstill, for every slot that holds anything. Here slots are copied while they are
// served, hundreds at a time, and each is handed over by a script that compares:
//
//	source (at its node)                     target
//	  read keys and values  ── IMPORTING, ──►  copies, which nobody is sent to yet
//	     │                     RESTORE
//	     ▼
//	  script, for each slot: are keys and values what was copied?
//	     yes: MIGRATING, delete them           from here on clients are sent to the
//	     │    in one atomic step               target (ASK), which has them all
//	     no:  copy that slot again
//	     ▼
//	  SETSLOT NODE             ◄── NODE ───    is the owner, and tells all members
//
// Whenever this ends, at whatever line, each slot is in one of three states that serve
// all its records: served by the source with copies that nobody sees; handed over, with
// clients sent on; or done. repair finishes or undoes what is open.
//
// The mover stands at the source: values cross the link that MIGRATE would send them
// over, once. What is read at a time is bounded by how long the source is kept from its
// clients. A slot whose records change faster than they can be copied is moved by
// MIGRATE after copyTries.
const (
	// linkTimeout bounds one request to a server over a link of the lab.
	linkTimeout = 30 * time.Second
	// lanes are how many batches of one source and target are under way at a time.
	lanes = 4
	// copyTries is how often a slot is copied before MIGRATE moves it.
	copyTries = 6
	// connectTrips are the round trips of a first request: the connection, its name, and
	// the request.
	connectTrips = 3
	// maxSlots is how many slots one batch may hold.
	maxSlots = 256
	// maxScriptKeys is how many keys one script may take: each costs the server some
	// 15 us in which it serves nobody.
	maxScriptKeys = 300
)

// executePlan carries a plan out, all its streams at the same time, and returns the bytes of
// keys and values that were moved.
func (c *cluster) executePlan(ctx context.Context, masters []view, plan []transfer) (int64, error) {
	for _, v := range masters {
		if v.self.countMoves() > 0 {
			// An owner that has handed a slot over has none of its records to move.
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

// source is a master that gives slots away.
type source struct {
	*goredis.Client // at its own node
	from            view
	scripted        bool // whether it hands slots over by the script
	pace            pace
	one             sync.Mutex // held while MIGRATE stops it
}

// openSource gives a master the script, where it can use it. Before Redis 7 a key's expiry
// cannot be asked for as a time; Valkey's masters make SETSLOT wait for their replicas,
// which a script cannot.
func (c *cluster) openSource(ctx context.Context, from view) (*source, error) {
	src := &source{Client: from.openChanger(from.host), from: from, scripted: true}
	if c.kind.ackedSlots && len(from.replicas()) > 0 || c.kind.name == Name && major(c.Env.Installation.Version) < 7 {
		src.scripted = false
		return src, nil
	}
	if err := src.ScriptLoad(ctx, handOverScript).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("giving %s its script: %w", from.host.Name(), err), src.Close())
	}
	return src, nil
}

// stream moves slots from one master to another.
type stream struct {
	*source
	to     view
	target *goredis.Client // from the source's node, over the link between them
	bytes  *atomic.Int64
	atOnce bool // whether the target claims many slots in one transaction
}

// moveSlots moves slots, some batches at the same time.
func (s *stream) moveSlots(ctx context.Context, slots []int) error {
	began := time.Now()
	if err := s.target.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("reaching it: %w", err)
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

// moveBatch carries one batch through.
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

// job is a slot to move.
type job struct {
	slot  int
	tries int      // how often it has been copied in vain
	stale []string // keys of the target's that are left of that
}

// queue is what a stream has to do. Jobs that a lane has taken may come back to it.
type queue struct {
	mu      sync.Mutex
	jobs    []job
	open    int           // jobs that are not done
	changed chan struct{} // replaced, and the last one closed, when jobs come back or all are done
}

func newQueue(slots []int) *queue {
	q := &queue{open: len(slots), changed: make(chan struct{})}
	for _, s := range slots {
		q.jobs = append(q.jobs, job{slot: s})
	}
	return q
}

// popJobs removes up to n jobs. It waits for those that another lane may give back, and
// returns none when all are done.
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

// requeue gives jobs back.
func (q *queue) requeue(jobs ...job) {
	if len(jobs) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, jobs...)
	q.notify()
}

// complete says that so many jobs are.
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

// pace is how many keys of a source are taken at a time, so that neither reading them
// nor handing them over keeps it from its clients for longer than budget.
type pace struct {
	mu     sync.Mutex
	keys   float64
	budget time.Duration
}

const (
	// minBudget is how long one batch may occupy a source; a client's request waits for
	// half of that on average. Over a link with a round trip of more than budgetShare
	// times that, a batch may take more: its clients are as far.
	minBudget   = 3 * time.Millisecond
	budgetShare = 20
	// maxBatch bounds the keys and values of a batch, in bytes: what stands in a
	// link's queue before others' packets.
	maxBatch = 256 << 10
	// firstKeys, minKeys and maxKeys are how many keys a batch begins with and may
	// come to hold.
	firstKeys, minKeys, maxKeys = 64, 16, 512
)

// setRoundTrip says how far a target is.
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

// adjust corrects the pace: a batch of so many keys and bytes occupied the source for so
// long. It goes half of the way to what that asks for.
func (p *pace) adjust(keys, bytes int, long time.Duration) {
	if keys == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fits := float64(keys) * min(float64(p.budget)/float64(max(long, 1)), maxBatch/float64(max(bytes, 1)))
	p.keys = min(max((p.keys+fits)/2, minKeys), maxKeys)
}
