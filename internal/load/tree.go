package load

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/load/mdtest"
)

// TreeClient is a client of a directory tree, for the workloads of package mdtest.
type TreeClient interface {
	Client
	// Areas is how many areas the tree has, at least 1.
	Areas() int
	// Tree does one operation. Creating what is there is no error where the operation
	// makes Parents.
	Tree(ctx context.Context, op *mdtest.Op) error
}

// treeSeries is the series of mdtest's first kind of operation.
const treeSeries = series(innerUpdate + 1)

// isTree tells whether a series is of a tree's operations.
func (s series) isTree() bool { return s >= treeSeries }

// openTree gives a worker what it needs for a tree, once its client is open.
func (w *worker) openTree() error {
	t := w.d.spec.Tree
	if t == nil {
		return nil
	}
	client, ok := w.client.(TreeClient)
	if !ok {
		return fmt.Errorf("%w: the workload %s is on a directory tree, which this database does not have", ErrSpec, t.Name)
	}
	if w.d.audit != nil {
		w.ledger = mdtest.NewLedger()
	}
	w.tree, w.treeGen = client, t.NewGenerator(w.d.spec.Seed, w.number, max(1, client.Areas()))
	return nil
}

// operateTree does the next operation on a tree, meant to be sent at intended (negative: now),
// counts it and returns the time.
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

// dropTree leaves a tree's next operation out.
func (w *worker) dropTree() {
	op := w.treeGen.Next()
	w.shard.mu.Lock()
	if !w.abandoned {
		w.shard.now.counts[treeSeries+series(op.Kind)].Dropped++
	}
	w.shard.mu.Unlock()
	w.treeGen.Done(false)
}

// createFile creates the n-th file of a load.
func (w *worker) createFile(n int64) error {
	return w.tree.Tree(w.ctx.Load(), w.d.spec.Tree.Load(n, max(1, w.tree.Areas())))
}
