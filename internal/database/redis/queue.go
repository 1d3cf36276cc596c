package redis

import (
	"context"
	"sync"
	"time"
)

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
