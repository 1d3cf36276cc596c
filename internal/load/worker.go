package load

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"skerry/internal/load/audit"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// worker sends operations through one client, one at a time.
type worker struct {
	d      *driver
	number int // from 0
	client Client
	// bulk is the client where records are loaded many at a time, nil elsewhere.
	bulk  BulkClient
	batch insertBatch
	audit *audit.Writer // nil for none
	gen   *ycsb.Generator
	shard *shard
	waker *waker // nil in an unpaced drive
	// tree is the client, and branches makes the operations, of a workload on a directory
	// tree; nil in others.
	tree     TreeClient
	treeGen  *mdtest.Generator
	ledger   *mdtest.Ledger // nil where nothing is audited
	lastRead []Field
	// left is set under the shard's lock when nobody waits for the worker any more:
	// what it counts from then on is thrown away.
	abandoned bool
	// ctx is replaced by the worker after it expired.
	ctx atomic.Pointer[opContext]
}

// run drives a segment from its first operation on. A worker that was left behind ends its own client.
func (w *worker) run(g *segment, first slot) {
	w.drive(g, first)
	w.shard.mu.Lock()
	left := w.abandoned
	w.shard.mu.Unlock()
	if left {
		_ = w.close() // nobody is there to tell
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

// drive sends a segment's operations, beginning with one that is the worker's own, until it ends.
func (w *worker) drive(g *segment, at slot) {
	var free time.Duration // since when the worker has nothing to do
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

// sendDecision is what becomes of an operation that is due at a time.
type sendDecision uint8

const (
	decideSend sendDecision = iota // to be sent
	decideDrop                     // to be dropped
	decideEnd                      // the segment has ended: no more operations
)

// await sleeps until an operation is due. free is when the worker's last one ended: what was due
// after that and is late was held up by the driver, for want of a processor, and not by the database.
func (w *worker) await(g *segment, free, intended time.Duration) sendDecision {
	now := w.d.now()
	if g.end > 0 && intended >= g.end {
		_ = w.waker.sleep(g.end - now) // the time until then was measured too
		return decideEnd
	}
	if now < intended {
		if err := w.waker.sleep(intended - now); err != nil {
			return decideEnd // interrupted: the segment was stopped
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
	// What is still waiting a while after the end is not sent any more, and must
	// not be forgotten.
	if g.end > 0 && now > g.end+StallAfter {
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

// operate does one operation, meant to be sent at intended (negative: now), counts it
// and returns the time.
func (w *worker) operate(op *ycsb.Op, intended time.Duration) time.Duration {
	switch op.Kind {
	case ycsb.Read:
		sent := w.beginOperation(series(op.Kind))
		err := w.read(op)
		done := w.endOperation()
		w.recordRead(op.Number, sent, done, err)
		if err == nil && w.d.spec.Workload.DataIntegrity {
			w.verify(op)
		}
		return w.count(series(op.Kind), intended, sent, done, err)
	case ycsb.ReadModifyWrite:
		return w.readModifyWrite(op, intended)
	}
	if changes(op.Kind) {
		w.stamp(op)
	}
	sent := w.beginOperation(series(op.Kind))
	err := w.execute(op)
	done := w.endOperation()
	if changes(op.Kind) {
		w.recordWrite(op.Number, sent, done, err)
	}
	if op.Kind == ycsb.Insert {
		w.d.source.Inserts().Complete(op.Number, err == nil)
	}
	if op.Kind == ycsb.Delete {
		w.d.source.Inserts().CompleteRemove(op.Number, err == nil, err != nil && classify(err).Outcome != NotDone)
	}
	return w.count(series(op.Kind), intended, sent, done, err)
}

// changes tells whether an operation writes values. Deletes are not audited.
func changes(k ycsb.Kind) bool { return k == ycsb.Update || k == ycsb.Insert }

// readModifyWrite reads, then updates; when the read fails there is nothing to modify.
func (w *worker) readModifyWrite(op *ycsb.Op, intended time.Duration) time.Duration {
	sent := w.beginOperation(innerRead)
	err := w.read(op)
	done := w.endOperation()
	w.recordRead(op.Number, sent, done, err)
	w.count(innerRead, intended, sent, done, err)
	if err == nil {
		if w.d.spec.Workload.DataIntegrity {
			took := w.verify(op) // no part of the operation
			sent += took
			if intended >= 0 {
				intended += took
			}
		}
		w.stamp(op)
		again := w.beginOperation(innerUpdate)
		err = w.execute(op)
		done = w.endOperation()
		w.recordWrite(op.Number, again, done, err)
		w.count(innerUpdate, -1, again, done, err)
	}
	return w.count(series(op.Kind), intended, sent, done, err)
}

// insert does the load phase's n-th insert until the database acknowledges it.
func (w *worker) insert(g *segment, n int64, intended time.Duration) time.Duration {
	op := w.gen.Load(uint64(n))
	w.stampLoaded(op)
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		sent := w.beginOperation(series(ycsb.Insert))
		if intended < 0 {
			intended = sent
		}
		var err error
		if w.tree != nil {
			err = w.createFile(n)
		} else {
			err = w.execute(op)
		}
		done := w.endOperation()
		if err == nil {
			g.acknowledged(done)
			return w.count(series(ycsb.Insert), intended, sent, done, nil)
		}
		e := classify(err)
		if e.Class == classUnsupported || !g.awaitRetry(done, backoff) {
			g.unacknowledged(op.Key)
			return w.count(series(ycsb.Insert), intended, sent, done, e)
		}
		w.countRetry(e)
	}
}

// countRetry counts an insert that failed and is tried again.
func (w *worker) countRetry(e *OpError) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	if !w.abandoned {
		w.shard.now.retries++
		w.shard.now.addError(series(ycsb.Insert), e)
	}
}

func (w *worker) read(op *ycsb.Op) (err error) {
	w.lastRead, err = w.client.Read(w.ctx.Load(), w.d.spec.Table, op.Key, op.Fields, w.lastRead[:0])
	return err
}

func (w *worker) execute(op *ycsb.Op) error {
	ctx, table := context.Context(w.ctx.Load()), w.d.spec.Table
	switch op.Kind {
	case ycsb.Insert:
		return w.client.Insert(ctx, table, op.Key, op.Values)
	case ycsb.Scan:
		_, err := w.client.Scan(ctx, table, op.Key, op.Length, op.Fields, nil)
		return err
	case ycsb.Delete:
		return w.client.Delete(ctx, table, op.Key)
	}
	return w.client.Update(ctx, table, op.Key, op.Values)
}

// verify checks what was read, counts the check and returns the time that it took.
func (w *worker) verify(op *ycsb.Op) time.Duration {
	from := w.d.now()
	v := w.gen.Verify(op, w.lastRead)
	took := w.d.now() - from
	w.shard.mu.Lock()
	if !w.abandoned {
		w.shard.now.verified[v]++
		w.shard.now.verify.add(times{took, took})
	}
	w.shard.mu.Unlock()
	return took
}

// beginOperation starts an operation's clock and its deadline.
func (w *worker) beginOperation(s series) time.Duration {
	now := w.d.now()
	w.ctx.Load().begin(s, now+w.d.spec.Timeout)
	return now
}

// endOperation stops both.
func (w *worker) endOperation() time.Duration {
	now := w.d.now()
	if !w.ctx.Load().end() {
		w.ctx.Store(newOpContext(w.d.valueCtx, w.d.base))
	}
	return now
}

// count counts an operation and returns when it was done.
func (w *worker) count(s series, intended, sent, done time.Duration, err error) time.Duration {
	if intended < 0 {
		intended = sent
	}
	at := times{service: done - sent, response: done - intended}
	var e *OpError
	if err != nil {
		e = classify(err)
	}
	w.shard.mu.Lock()
	if !w.abandoned {
		w.shard.now.addOperation(s, at, e)
		if e == nil && s.isWhole() {
			w.shard.recent = append(w.shard.recent, completion{from: intended, sent: sent, at: done})
		}
		if e == nil && s.isWrite() {
			w.shard.now.writes.add(done)
		}
	}
	w.shard.mu.Unlock()
	return done
}
