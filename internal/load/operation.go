package load

import (
	"context"
	"time"

	"skerry/internal/load/ycsb"
)

// operate executes and counts one operation and returns when it was done. intended is when it was
// due; negative means now.
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

// changes reports whether an operation writes values. Deletes are not audited.
func changes(k ycsb.Kind) bool { return k == ycsb.Update || k == ycsb.Insert }

// readModifyWrite reads, then updates. If the read fails, there is no update.
func (w *worker) readModifyWrite(op *ycsb.Op, intended time.Duration) time.Duration {
	sent := w.beginOperation(innerRead)
	err := w.read(op)
	done := w.endOperation()
	w.recordRead(op.Number, sent, done, err)
	w.count(innerRead, intended, sent, done, err)
	if err == nil {
		if w.d.spec.Workload.DataIntegrity {
			took := w.verify(op) // the check is not part of the operation
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

// insert executes the n-th insert of the load phase, until the database acknowledges it.
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

// verify checks and counts the last read. It returns the time that the check took.
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

func (w *worker) beginOperation(s series) time.Duration {
	now := w.d.now()
	w.ctx.Load().begin(s, now+w.d.spec.Timeout)
	return now
}

func (w *worker) endOperation() time.Duration {
	now := w.d.now()
	if !w.ctx.Load().end() {
		w.ctx.Store(newOpContext(w.d.valueCtx, w.d.base))
	}
	return now
}

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

// maxBatch bounds the values of one request, in bytes. etcd limits requests to 1.5 MiB, and MySQL's
// group replication slows down with large transactions.
const maxBatch = 512 << 10

// insertBatch holds the records of one request, and their numbers in the load phase.
type insertBatch struct {
	numbers []int64
	records []Record
	bytes   []byte // backing array of the values
}

func (b *insertBatch) add(n int64, op *ycsb.Op) {
	i := len(b.numbers)
	b.numbers = append(b.numbers, n)
	if i == len(b.records) {
		b.records = append(b.records, Record{})
	}
	r := &b.records[i]
	r.Key, r.Values = op.Key, r.Values[:0]
	for _, f := range op.Values {
		from := len(b.bytes)
		b.bytes = append(b.bytes, f.Value...)
		r.Values = append(r.Values, Field{Name: f.Name, Value: b.bytes[from:len(b.bytes):len(b.bytes)]})
	}
}

// insertBatch executes the n-th insert of the load phase together with following ones in one
// request. If the request fails, each insert is repeated alone until it is acknowledged.
func (w *worker) insertBatch(g *segment, n int64) time.Duration {
	b := &w.batch
	b.numbers, b.bytes = b.numbers[:0], b.bytes[:0]
	for {
		op := w.gen.Load(uint64(n))
		w.stampLoaded(op)
		b.add(n, op)
		if len(b.numbers) == w.d.spec.Batch || len(b.bytes) >= maxBatch {
			break
		}
		if n = g.pace.next().n; n >= g.operations {
			break
		}
	}
	sent := w.beginOperation(series(ycsb.Insert))
	err := w.bulk.InsertAll(w.ctx.Load(), w.d.spec.Table, b.records[:len(b.numbers)])
	done := w.endOperation()
	if err != nil {
		w.countRetry(classify(err))
		for i, n := range b.numbers {
			if g.closedAt(done) { // no further operation may begin
				g.unacknowledged(b.records[i].Key)
				continue
			}
			done = w.insert(g, n, -1)
		}
		return done
	}
	g.acknowledged(done)
	for range b.numbers {
		w.count(series(ycsb.Insert), sent, sent, done, nil)
	}
	return done
}

const treeSeries = series(innerUpdate + 1)

func (s series) isTree() bool { return s >= treeSeries }

// operateTree executes and counts the next operation on a directory tree and returns when it was
// done. intended is when it was due; negative means now.
func (w *worker) operateTree(intended time.Duration) time.Duration {
	op := w.treeGen.Next()
	s := treeSeries + series(op.Kind)
	ended := w.beginTreeChange(op)
	sent := w.beginOperation(s)
	err := w.tree.Tree(w.ctx.Load(), op)
	done := w.endOperation()
	ended(err)
	w.treeGen.Done(err == nil)
	return w.count(s, intended, sent, done, err)
}

func (w *worker) dropTree() {
	op := w.treeGen.Next()
	w.shard.mu.Lock()
	if !w.abandoned {
		w.shard.now.counts[treeSeries+series(op.Kind)].Dropped++
	}
	w.shard.mu.Unlock()
	w.treeGen.Done(false)
}

func (w *worker) createFile(n int64) error {
	return w.tree.Tree(w.ctx.Load(), w.d.spec.Tree.Load(n, max(1, w.tree.Areas())))
}
