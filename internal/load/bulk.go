package load

import (
	"context"
	"time"

	"skerry/internal/load/ycsb"
)

// BulkClient is a client that inserts many records in one request. The load phase uses it as far
// as Spec.Batch lets it.
type BulkClient interface {
	// InsertAll inserts records, each as Insert does. Their keys are different. After an
	// error any of them may be there. The context's deadline is that of all together.
	InsertAll(ctx context.Context, table string, records []Record) error
}

// Record is a key with its fields.
type Record struct {
	Key    string
	Values []Field
}

// maxBatch bounds the values of one request, in bytes: databases bound what they take at
// once (etcd 1.5 MiB, and MySQL's group replication slows down with large transactions).
const maxBatch = 512 << 10

// insertBatch is the records of one request, and their numbers in the load phase.
type insertBatch struct {
	numbers []int64
	records []Record
	bytes   []byte // values that records refer to
}

// add adds a copy of an insert.
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

// insertBatch does the load phase's n-th insert and, in the same request, more that are to be
// done. When that fails, each is done by itself until the database acknowledges it.
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
			if g.closedAt(done) { // nothing more is begun
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
