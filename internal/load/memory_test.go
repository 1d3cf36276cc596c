package load

import (
	"context"
	"sync"
	"testing"
	"time"

	"skerry/internal/load/ycsb"
)

// memory is an in-memory database.
type memory struct {
	mu      sync.Mutex
	records map[string]map[string]string
	reads   []string // keys in order
	calls   int
	opened  int
	closed  int
	// before, if set, is called before every operation with its number. An error fails the
	// operation.
	before func(ctx context.Context, call int, kind ycsb.Kind, key string) error
	// corrupt changes what a read returns.
	corrupt func(key string, fields []Field) []Field
}

func newMemory() *memory { return &memory{records: map[string]map[string]string{}} }

type memoryClient struct{ m *memory }

func (m *memory) open(context.Context) (Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	return &memoryClient{m}, nil
}

func (m *memory) call(ctx context.Context, kind ycsb.Kind, key string) error {
	m.mu.Lock()
	n := m.calls
	m.calls++
	if kind == ycsb.Read {
		m.reads = append(m.reads, key)
	}
	m.mu.Unlock()
	if m.before != nil {
		return m.before(ctx, n, kind, key)
	}
	return nil
}

func (c *memoryClient) Read(ctx context.Context, _, key string, _ []string, dst []Field) ([]Field, error) {
	if err := c.m.call(ctx, ycsb.Read, key); err != nil {
		return dst, err
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	r, ok := c.m.records[key]
	if !ok {
		return dst, ErrNotFound
	}
	for name, v := range r {
		dst = append(dst, Field{Name: name, Value: []byte(v)})
	}
	if c.m.corrupt != nil {
		dst = c.m.corrupt(key, dst)
	}
	return dst, nil
}

func (c *memoryClient) Scan(ctx context.Context, _, start string, _ int, _ []string, _ func(string, []Field)) (int, error) {
	return 0, c.m.call(ctx, ycsb.Scan, start)
}

func (c *memoryClient) write(ctx context.Context, kind ycsb.Kind, key string, values []Field) error {
	if err := c.m.call(ctx, kind, key); err != nil {
		return err
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	r := c.m.records[key]
	if r == nil {
		if kind == ycsb.Update {
			return ErrNotFound
		}
		r = map[string]string{}
		c.m.records[key] = r
	}
	for _, f := range values {
		r[f.Name] = string(f.Value)
	}
	return nil
}

func (c *memoryClient) Update(ctx context.Context, _, key string, v []Field) error {
	return c.write(ctx, ycsb.Update, key, v)
}

func (c *memoryClient) Insert(ctx context.Context, _, key string, v []Field) error {
	return c.write(ctx, ycsb.Insert, key, v)
}

func (c *memoryClient) Delete(context.Context, string, string) error { return ErrUnsupported }

func (c *memoryClient) Close() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.closed++
	return nil
}

// workload is a core workload with changes.
func workload(t testing.TB, name string, changes ycsb.Properties) ycsb.Workload {
	t.Helper()
	p, ok := ycsb.Builtin(name)
	if !ok {
		t.Fatalf("no workload %s", name)
	}
	w, _, err := ycsb.Parse(p.Merge(changes))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// loaded is a memory that holds a workload's records.
func loaded(t testing.TB, w ycsb.Workload) *memory {
	t.Helper()
	m := newMemory()
	if _, err := Run(context.Background(), Spec{Phase: PhaseLoad, Workload: w, Threads: 4}, m.open, nil); err != nil {
		t.Fatal(err)
	}
	m.calls, m.opened, m.closed, m.reads = 0, 0, 0, nil
	return m
}

// drive runs a spec against a memory and checks invariants of every drive: the intervals add up to
// the result, and every client is closed.
func drive(t testing.TB, m *memory, s Spec) (Result, []Interval) {
	t.Helper()
	var intervals []Interval
	r, err := Run(context.Background(), s, m.open, func(i Interval) { intervals = append(intervals, i) })
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, intervals)
	if m.opened != m.closed {
		t.Errorf("%d clients opened, %d closed", m.opened, m.closed)
	}
	return r, intervals
}

// steady repeats a drive until the machine did not stall in it. A stall drops due operations and
// skips seconds, as it should. It fits specs whose target leaves much less than stallAfter between
// two operations.
func steady(t testing.TB, s Spec) (*memory, Result, []Interval) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		m := loaded(t, s.Workload)
		var mu sync.Mutex
		last, longest := time.Now(), time.Duration(0)
		seen := func() {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			last, longest = now, max(longest, now.Sub(last))
		}
		m.before = func(context.Context, int, ycsb.Kind, string) error {
			seen()
			return nil
		}
		r, intervals := drive(t, m, s)
		if seen(); longest < stallAfter || attempt == 10 {
			return m, r, intervals
		}
	}
}

func check(t testing.TB, r Result, intervals []Interval) {
	t.Helper()
	var sum Totals
	last := int64(-1 << 62)
	for _, i := range intervals {
		if i.T < last || i.T == last && i.T >= 0 {
			t.Errorf("interval %d after %d", i.T, last)
		}
		last = i.T
		if i.T >= 0 {
			sum.Merge(i.Totals)
		}
	}
	if sum.Counts != r.Counts {
		t.Errorf("the intervals sum up to %+v, but the result is %+v", sum.Counts, r.Counts)
	}
	if n := r.Latency.Service.Count(); n != r.OK || r.Latency.Response.Count() != n {
		t.Errorf("%d and %d latencies of %d operations", n, r.Latency.Response.Count(), r.OK)
	}
	for name, op := range r.Operations {
		if op.Latency.Service.Count() != op.OK && name != verifySeries {
			t.Errorf("%s: %d latencies of %d operations", name, op.Latency.Service.Count(), op.OK)
		}
		if n := op.FailedLatency.Response.Count(); n != op.Failed+op.Unknown && name != verifySeries {
			t.Errorf("%s: %d latencies of %d failures", name, n, op.Failed+op.Unknown)
		}
	}
}
