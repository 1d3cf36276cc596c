package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/ycsb"
)

// bulkMemory is a database that inserts many records at once.
type bulkMemory struct {
	*memory
	mu    sync.Mutex
	sizes []int // records per request
	// refuse, if set, returns the error of a request; some of its records are stored.
	refuse func(request int) error
}

type bulkClient struct {
	Client
	b *bulkMemory
}

func (b *bulkMemory) open(ctx context.Context) (Client, error) {
	c, err := b.memory.open(ctx)
	return &bulkClient{c, b}, err
}

func (c *bulkClient) InsertAll(ctx context.Context, table string, records []Record) error {
	c.b.mu.Lock()
	n := len(c.b.sizes)
	c.b.sizes = append(c.b.sizes, len(records))
	c.b.mu.Unlock()
	var err error
	if c.b.refuse != nil {
		if err = c.b.refuse(n); err != nil {
			records = records[:len(records)/2]
		}
	}
	for _, r := range records {
		if e := c.Insert(ctx, table, r.Key, r.Values); e != nil {
			return e
		}
	}
	return err
}

func TestLoadInBatches(t *testing.T) {
	for name, c := range map[string]struct {
		spec   Spec
		refuse func(int) error
		sizes  []int // records per request, sorted
		once   bool  // each record is written once
	}{
		"one thread":       {spec: Spec{Batch: 30}, sizes: []int{10, 30, 30, 30}, once: true},
		"one at a time":    {spec: Spec{Batch: 1}, once: true},
		"all in one batch": {spec: Spec{Batch: 1000, Threads: 1}, sizes: []int{100}, once: true},
		"a target":         {spec: Spec{Batch: 30, Target: 50_000}, once: true},
		"some requests fail": {spec: Spec{Batch: 30}, sizes: []int{10, 30, 30, 30}, refuse: func(n int) error {
			if n%2 == 0 {
				return Unknown("reset", "ams", errors.New("connection reset"))
			}
			return nil
		}},
		"many at once are not supported": {spec: Spec{Batch: 50}, sizes: []int{50, 50}, refuse: func(int) error { return ErrUnsupported }},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t, "a", ycsb.Properties{"recordcount": "100", "dataintegrity": "true"})
			b := &bulkMemory{memory: newMemory(), refuse: c.refuse}
			c.spec.Phase, c.spec.Workload = PhaseLoad, w
			r, err := Run(context.Background(), c.spec, b.open, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.OK != 100 || r.Failed != 0 || r.Unknown != 0 || len(b.records) != 100 {
				t.Errorf("%+v, %d records", r.Counts, len(b.records))
			}
			slices.Sort(b.sizes)
			if d := cmp.Diff(c.sizes, b.sizes); d != "" {
				t.Errorf("requests: %s", d)
			}
			if c.once != (b.calls == 100) {
				t.Errorf("%d records were written", b.calls)
			}
			if retried := c.refuse != nil; retried != (r.Retries > 0) {
				t.Errorf("%d retries", r.Retries)
			}
			if v, err := Verify(context.Background(), Spec{Workload: w, Threads: 2}, b.memory.open); err != nil || v.Records != 100 {
				t.Errorf("verified %+v, %v", v, err)
			}
		})
	}
}

// Values that do not fit into one request go out in several.
func TestBatchesAreBounded(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "40", "fieldlength": fmt.Sprint(maxBatch / 100)})
	b := &bulkMemory{memory: newMemory()}
	if _, err := Run(context.Background(), Spec{Phase: PhaseLoad, Workload: w, Batch: 1000}, b.open, nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{11, 11, 11, 7}, b.sizes); d != "" { // ten fields per record
		t.Error(d)
	}
}

// Records that neither a batch nor a single insert could write are listed.
func TestFailedBatchesAreListed(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "20"})
	b := &bulkMemory{memory: newMemory()}
	b.before = func(_ context.Context, _ int, _ ycsb.Kind, key string) error {
		if key == w.Key(3) {
			return ErrUnsupported
		}
		return nil
	}
	r, err := Run(context.Background(), Spec{Phase: PhaseLoad, Workload: w, Batch: 8}, b.open, nil)
	if !errors.Is(err, ErrIncomplete) || r.OK != 19 {
		t.Errorf("%+v, %v", r.Counts, err)
	}
	if d := cmp.Diff([]string{w.Key(3)}, r.UnacknowledgedKeys); d != "" {
		t.Error(d)
	}
}

// A load that gives up does not retry the records of its batches.
func TestBatchesEndWithLoad(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "100"})
	b := &bulkMemory{memory: newMemory()}
	tried := make(map[string]bool)
	b.before = func(_ context.Context, _ int, _ ycsb.Kind, key string) error {
		tried[key] = true // one worker
		return Failed("down", "", errors.New("down"))
	}
	r, err := Run(context.Background(), Spec{Phase: PhaseLoad, Workload: w, Batch: 50, GiveUp: 20 * time.Millisecond}, b.open, nil)
	if !errors.Is(err, ErrIncomplete) || r.Stopped != stoppedGaveUp || r.Unacknowledged != 100 || len(r.UnacknowledgedKeys) != 100 {
		t.Errorf("%d unacknowledged, %d listed, stopped by %s: %v", r.Unacknowledged, len(r.UnacknowledgedKeys), r.Stopped, err)
	}
	if d := cmp.Diff(map[string]bool{w.Key(0): true}, tried); d != "" {
		t.Error(d)
	}
}
