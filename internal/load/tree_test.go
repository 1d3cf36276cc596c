package load

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// forest counts what is done to a tree.
type forest struct {
	Client
	done    *[mdtest.Kinds]atomic.Int64
	planted *atomic.Int64
	delay   time.Duration
}

func (f forest) Areas() int { return 3 }

func (f forest) Tree(_ context.Context, op *mdtest.Op) error {
	if op.Parents && op.Kind == mdtest.Create {
		f.planted.Add(1)
		return nil
	}
	time.Sleep(f.delay)
	if f.done[op.Kind].Add(1)%10 == 0 {
		return Failed("exists", "", errors.New("it is there"))
	}
	return nil
}

func (f forest) Close() error { return nil }

func TestTree(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "50", "operationcount": "50"})
	tree, err := mdtest.Parse(mdtest.Namespace, 50, map[string]string{"shared": "0.5", "files": "10"})
	if err != nil {
		t.Fatal(err)
	}
	var done [mdtest.Kinds]atomic.Int64
	var planted atomic.Int64
	open := func(delay time.Duration) OpenClient {
		return func(context.Context) (Client, error) {
			return forest{done: &done, planted: &planted, delay: delay}, nil
		}
	}
	if r, err := Run(t.Context(), Spec{Phase: PhaseLoad, Workload: w, Tree: tree, Threads: 3}, open(0), nil); err != nil || planted.Load() != 50 || r.Operations["INSERT"].OK != 50 {
		t.Fatalf("%d files of 50 were loaded: %+v, %v", planted.Load(), r.Operations, err)
	}
	r, err := Run(t.Context(), Spec{Workload: w, Tree: tree, Threads: 4, Operations: 2000, Seed: 5}, open(0), nil)
	if err != nil || r.Ended() != 2000 {
		t.Fatalf("%d operations of 2000 ended, %v", r.Ended(), err)
	}
	for k := range mdtest.Kinds {
		n, o := done[k].Load(), r.Operations[k.String()]
		if n == 0 && o == nil {
			continue
		}
		if o == nil || o.OK+o.Failed != n || o.Failed != n/10 || o.Latency.Service.Count() != o.OK {
			t.Errorf("%v was done %d times: %+v", k, n, o)
		}
	}
	slow, err := Run(t.Context(), Spec{Workload: w, Tree: tree, Arrival: Constant, Target: 1000, MaxInFlight: 1, Duration: 100 * time.Millisecond}, open(20*time.Millisecond), nil)
	if err != nil || slow.Dropped == 0 {
		t.Errorf("%d operations were dropped where there was no room for them, %v", slow.Dropped, err)
	}
	m := newMemory()
	if _, err := Run(t.Context(), Spec{Workload: w, Tree: tree, Operations: 1}, m.open, nil); !errors.Is(err, ErrSpec) {
		t.Errorf("a database that is no tree: %v", err)
	}
}
