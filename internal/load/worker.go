package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"skerry/internal/load/audit"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

type worker struct {
	d      *driver
	number int // from 0
	client Client
	// bulk is set if records are loaded in batches.
	bulk  BulkClient
	batch insertBatch
	audit *audit.Writer // nil if the drive has no audit
	gen   *ycsb.Generator
	shard *shard
	waker *waker // nil in an unpaced drive
	// tree and treeGen are the client and the generator of a workload on a directory tree; nil
	// otherwise.
	tree     TreeClient
	treeGen  *mdtest.Generator
	ledger   *mdtest.TreeLedger // nil if the drive has no audit
	lastRead []Field
	// abandoned is set, under the shard's lock, when the driver no longer waits for the worker.
	// Later counts are discarded.
	abandoned bool
	// ctx is replaced by the worker after it expired.
	ctx atomic.Pointer[opContext]
}

// run drives a segment, beginning with operation first. An abandoned worker closes its own client.
func (w *worker) run(g *segment, first slot) {
	w.drive(g, first)
	w.shard.mu.Lock()
	left := w.abandoned
	w.shard.mu.Unlock()
	if left {
		_ = w.close() // the driver no longer waits for errors
	}
}

func (w *worker) close() error {
	var errs []error
	if w.client != nil {
		errs = append(errs, w.client.Close())
	}
	if w.waker != nil {
		errs = append(errs, w.waker.close())
	}
	return errors.Join(errs...)
}

func (w *worker) openTree() error {
	t := w.d.spec.Tree
	if t == nil {
		return nil
	}
	client, ok := w.client.(TreeClient)
	if !ok {
		return fmt.Errorf("%w: workload %s needs a database with a directory tree", errSpec, t.Name)
	}
	if w.d.audit != nil {
		w.ledger = mdtest.NewTreeLedger()
	}
	w.tree, w.treeGen = client, t.NewGenerator(w.d.spec.Seed, w.number, max(1, client.Areas()))
	return nil
}

func (w *worker) drive(g *segment, at slot) {
	var free time.Duration // when the worker last became idle
	for now := w.d.now(); g.operations == 0 || at.n < g.operations; free, at = now, g.pace.next() {
		what, intended := decideSend, time.Duration(-1)
		if g.closedAt(now) {
			what = decideEnd
		} else if at.due >= 0 {
			intended = g.start + at.due
			what = w.await(g, free, intended)
		}
		switch {
		case what == decideEnd:
			if g.load {
				g.unacknowledged(w.d.spec.Workload.Key(w.d.spec.Workload.InsertStart + at.n))
			}
			return
		case what == decideDrop && w.tree != nil:
			w.dropTree()
		case what == decideDrop:
			w.dropOperation(w.gen.Kind(g.first + uint64(at.n)))
		case g.load && w.bulk != nil:
			now = w.insertBatch(g, at.n)
		case g.load:
			now = w.insert(g, at.n, intended)
		case w.tree != nil:
			now = w.operateTree(intended)
		default:
			now = w.operate(w.gen.Next(g.first+uint64(at.n)), intended)
		}
	}
}

type sendDecision uint8

const (
	decideSend sendDecision = iota
	decideDrop
	decideEnd // no more operations
)

// await sleeps until an operation is due. free is when the worker's last operation ended. If the
// operation was due later and is late, the driver lacked a processor; the database was not the
// cause.
func (w *worker) await(g *segment, free, intended time.Duration) sendDecision {
	now := w.d.now()
	if g.end > 0 && intended >= g.end {
		_ = w.waker.sleep(g.end - now) // the time until the end is measured, too
		return decideEnd
	}
	if now < intended {
		if err := w.waker.sleep(intended - now); err != nil {
			return decideEnd // the segment was stopped
		}
		now = w.d.now()
		w.shard.recordLateness(intended, now)
		return decideSend
	}
	if free <= intended {
		w.shard.recordLateness(intended, now)
	} else if g.skip && now-intended > g.tolerance {
		return decideDrop
	}
	// An operation that still waits some time after the end is dropped, and must be counted.
	if g.end > 0 && now > g.end+stallAfter {
		if g.load {
			return decideEnd
		}
		return decideDrop
	}
	return decideSend
}

func (w *worker) dropOperation(k ycsb.Kind) {
	w.shard.mu.Lock()
	if !w.abandoned {
		w.shard.now.counts[k].Dropped++
	}
	w.shard.mu.Unlock()
}

// opContext is the context of a worker's operations. Moving the deadline costs one atomic store,
// where context.WithTimeout creates a timer and two objects for each operation. The watchdog
// expires the context; an expired one is replaced.
type opContext struct {
	context.Context // for values
	base            time.Time
	done            chan struct{}
	// doing is the operation in flight. It is written before state, and never after the context
	// expired.
	doing series
	// state is the deadline of the operation in flight, in nanoseconds since base. It is negated
	// when the operation has ended, or expired.
	state atomic.Int64
	// at is when the context expired, in nanoseconds since base.
	at atomic.Int64
}

const expired = math.MinInt64

func newOpContext(parent context.Context, base time.Time) *opContext {
	return &opContext{Context: context.WithoutCancel(parent), base: base, done: make(chan struct{})}
}

func (c *opContext) begin(s series, deadline time.Duration) {
	c.doing = s
	c.state.Store(int64(deadline))
}

// end disarms the context and reports whether it can be reused.
func (c *opContext) end() bool {
	s := c.state.Load()
	return s > 0 && c.state.CompareAndSwap(s, -s)
}

func (c *opContext) inFlight() bool { s := c.state.Load(); return s > 0 || s == expired }

// expire ends the operation in flight if its deadline is before now.
func (c *opContext) expire(now time.Duration) {
	s := c.state.Load()
	if s > 0 && int64(now) > s && c.state.CompareAndSwap(s, expired) {
		c.at.Store(int64(now))
		close(c.done)
	}
}

// overdue is the time since the operation in flight expired, 0 if it did not.
func (c *opContext) overdue(now time.Duration) time.Duration {
	at := c.at.Load()
	if at == 0 || c.state.Load() != expired {
		return 0
	}
	return now - time.Duration(at)
}

// Deadline is that of the operation in flight.
func (c *opContext) Deadline() (time.Time, bool) {
	s := c.state.Load()
	if s == expired {
		return c.base, true // long ago
	}
	return c.base.Add(time.Duration(max(s, -s))), true
}

func (c *opContext) Done() <-chan struct{} { return c.done }

func (c *opContext) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
