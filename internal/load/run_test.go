package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

func TestClosedLoopDoesEveryOperationOnce(t *testing.T) {
	for _, threads := range []int{1, 7, 100} {
		w := workload(t, "a", ycsb.Properties{"operationcount": "5000"})
		m := loaded(t, w)
		r, _ := drive(t, m, Spec{Workload: w, Threads: threads, Seed: 1})
		if r.OK != 5000 || m.calls != 5000 || r.Stopped != stoppedOperations {
			t.Errorf("%d threads: %d ok, %d calls, stopped by %s", threads, r.OK, m.calls, r.Stopped)
		}
		if n := r.Operations["READ"].OK + r.Operations["UPDATE"].OK; n != 5000 {
			t.Errorf("%d threads: %d reads and updates", threads, n)
		}
		if r.Goodput() <= 0 || r.Goodput() != r.Throughput() {
			t.Errorf("throughput %v, goodput %v", r.Throughput(), r.Goodput())
		}
	}
}

func TestSameSeedSameOperations(t *testing.T) {
	w := workload(t, "c", ycsb.Properties{"operationcount": "300"})
	count := func(threads int, seed uint64, warmup time.Duration) map[string]int {
		m := loaded(t, w)
		var warm atomic.Bool
		warm.Store(warmup > 0)
		measured := map[string]int{}
		m.before = func(_ context.Context, _ int, _ ycsb.Kind, key string) error {
			if !warm.Load() {
				m.mu.Lock()
				measured[key]++
				m.mu.Unlock()
			}
			return nil
		}
		_, err := Run(context.Background(), Spec{Workload: w, Threads: threads, Seed: seed, Warmup: warmup}, m.open,
			func(i Interval) { warm.Store(false) })
		if err != nil {
			t.Fatal(err)
		}
		return measured
	}
	want := count(1, 5, 0)
	if d := cmp.Diff(want, count(8, 5, 0)); d != "" {
		t.Errorf("with more threads: %s", d)
	}
	if d := cmp.Diff(want, count(1, 5, 20*time.Millisecond)); d != "" {
		t.Errorf("with a warm-up: %s", d)
	}
	if cmp.Equal(want, count(1, 6, 0)) {
		t.Error("another seed gives the same operations")
	}
}

func TestOutcomes(t *testing.T) {
	w := workload(t, "c", ycsb.Properties{"operationcount": "1000"})
	m := loaded(t, w)
	m.before = func(_ context.Context, n int, _ ycsb.Kind, _ string) error {
		switch n % 10 {
		case 1:
			return Failed("clusterdown", "ams", errors.New("the slot is not served"))
		case 2:
			return Unknown("reset", "dub", errors.New("connection reset"))
		case 3:
			return ErrNotFound
		case 4:
			return errors.New("something else")
		case 5:
			return fmt.Errorf("wrapped: %w", ErrUnsupported)
		}
		return nil
	}
	r, _ := drive(t, m, Spec{Workload: w, Threads: 3})
	if want := (Counts{OK: 500, Failed: 300, Unknown: 200}); r.Counts != want {
		t.Errorf("%+v, want %+v", r.Counts, want)
	}
	want := []ErrorCount{
		{"READ", NotDone, "clusterdown", "ams", 100, "the slot is not served"},
		{"READ", InDoubt, "error", "", 100, "something else"},
		{"READ", NotDone, "not_found", "", 100, "no such record"},
		{"READ", InDoubt, "reset", "dub", 100, "connection reset"},
		{"READ", NotDone, "unsupported", "", 100, "wrapped: operation not supported"},
	}
	if d := cmp.Diff(want, r.Errors); d != "" {
		t.Error(d)
	}
	returns := map[string]int64{"OK": 500, "CLUSTERDOWN": 100, "ERROR": 100, "NOT_FOUND": 100, "RESET": 100, "NOT_IMPLEMENTED": 100}
	if d := cmp.Diff(returns, r.Operations["READ"].Returns); d != "" {
		t.Error(d)
	}
	if got := r.Goodput() / r.Throughput(); got < 0.499 || got > 0.501 {
		t.Errorf("goodput is %v of the throughput, want half", got)
	}
}

func TestReadModifyWriteCountsItsParts(t *testing.T) {
	w := workload(t, "f", ycsb.Properties{"operationcount": "1000"})
	m := loaded(t, w)
	updates := 0
	m.before = func(_ context.Context, _ int, k ycsb.Kind, _ string) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if k == ycsb.Update {
			if updates++; updates%10 == 0 {
				return Failed("oom", "", errors.New("no memory"))
			}
		}
		return nil
	}
	r, _ := drive(t, m, Spec{Workload: w, Threads: 2})
	rmw, read, update := r.Operations["READ-MODIFY-WRITE"], r.Operations["READ"], r.Operations["UPDATE"]
	if read.OK != 1000 {
		t.Errorf("%d reads, want one for each operation", read.OK)
	}
	if n := rmw.Ended(); n < 400 || n > 600 || update.Ended() != n || int(n) != updates {
		t.Errorf("%d read-modify-writes, %d updates, the database saw %d", n, update.Ended(), updates)
	}
	if rmw.Failed != update.Failed || rmw.Failed == 0 || rmw.Failed != r.Failed {
		t.Errorf("%d read-modify-writes failed, %d updates, %d in all", rmw.Failed, update.Failed, r.Failed)
	}
	if r.Ended() != 1000 {
		t.Errorf("%d operations in all, want 1000: parts count twice", r.Ended())
	}
	if rmw.Latency.Service.Mean() < update.Latency.Service.Mean() {
		t.Error("a read-modify-write was faster than its update")
	}
}

func TestFailedReadSkipsUpdate(t *testing.T) {
	w := workload(t, "f", ycsb.Properties{"operationcount": "200", "readproportion": "0"})
	m := loaded(t, w)
	m.before = func(_ context.Context, _ int, k ycsb.Kind, _ string) error {
		if k == ycsb.Update {
			t.Error("an update was sent")
		}
		return Unknown("reset", "", errors.New("connection reset"))
	}
	r, _ := drive(t, m, Spec{Workload: w})
	if r.Unknown != 200 || r.Operations["UPDATE"] != nil || r.Operations["READ-MODIFY-WRITE"].Unknown != 200 {
		t.Errorf("%+v", r.Counts)
	}
}

func TestTimeoutEndsOperationOnly(t *testing.T) {
	w := workload(t, "c", ycsb.Properties{"operationcount": "30"})
	m := loaded(t, w)
	m.before = func(ctx context.Context, n int, _ ycsb.Kind, _ string) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the context has no deadline")
		}
		if n%10 == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		return ctx.Err()
	}
	const timeout = 30 * time.Millisecond
	r, _ := drive(t, m, Spec{Workload: w, Timeout: timeout})
	if want := (Counts{OK: 27, Unknown: 3}); r.Counts != want {
		t.Errorf("%+v, want %+v: %+v", r.Counts, want, r.Errors)
	}
	if len(r.Errors) != 1 || r.Errors[0].Class != "timeout" {
		t.Errorf("errors %+v", r.Errors)
	}
	if got := r.Operations["READ"].FailedLatency.Service.Min(); got < timeout*99/100 {
		t.Errorf("timed out after %v, before its deadline of %v", got, timeout)
	}
}

func TestStuckClientIsAbandoned(t *testing.T) {
	w := workload(t, "c", ycsb.Properties{"operationcount": "10"})
	m := loaded(t, w)
	release := make(chan struct{})
	m.before = func(_ context.Context, n int, _ ycsb.Kind, _ string) error {
		if n == 4 {
			<-release // ignores the context
		}
		return nil
	}
	r, err := Run(context.Background(), Spec{Workload: w, Timeout: 10 * time.Millisecond}, m.open, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Stuck != 1 || r.OK != 4 || r.Unknown != 1 || r.Stopped != stoppedStuck || r.Errors[0].Class != "stuck" {
		t.Errorf("%d stuck, %+v, stopped by %s, %+v", r.Stuck, r.Counts, r.Stopped, r.Errors)
	}
	close(release)
	for { // the abandoned client is closed in the end
		m.mu.Lock()
		closed := m.closed
		m.mu.Unlock()
		if closed == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCancelReturnsResult(t *testing.T) {
	for _, s := range []Spec{
		{Threads: 4},
		{Threads: 4, Target: 50},
		{Arrival: Poisson, Target: 100, MaxInFlight: 50},
		{Arrival: Constant, Target: 1e-6, MaxInFlight: 3}, // waits for days
	} {
		s.Workload = workload(t, "a", nil)
		s.Duration = time.Hour
		m := loaded(t, s.Workload)
		ctx, cancel := context.WithCancel(context.Background())
		m.before = func(_ context.Context, n int, _ ycsb.Kind, _ string) error {
			if n == 0 {
				cancel()
			}
			return nil
		}
		r, err := Run(ctx, s, m.open, nil)
		cancel()
		if err != nil || r.Stopped != stoppedAsked || r.OK == 0 || m.opened != m.closed {
			t.Errorf("%+v: %v, %d ok, stopped by %s, %d of %d clients closed", s.Arrival, err, r.OK, r.Stopped, m.closed, m.opened)
		}
	}
}

func TestDurationEnds(t *testing.T) {
	w := workload(t, "c", nil)
	_, r, intervals := steady(t, Spec{Workload: w, Threads: 2, Duration: 1200 * time.Millisecond, Target: 500})
	if r.Stopped != stoppedDuration || r.Duration != 1200*time.Millisecond {
		t.Errorf("stopped by %s after %v", r.Stopped, r.Duration)
	}
	if len(intervals) != 2 || intervals[0].T != 0 || intervals[1].T != 1 {
		t.Errorf("%d intervals", len(intervals))
	}
	// 500 per second for 1.2 s, all due and none dropped.
	if r.OK != 600 {
		t.Errorf("%d operations, want 600", r.OK)
	}
	if intervals[0].Length < time.Second || intervals[0].CPU <= 0 || intervals[0].Late.Count() == 0 {
		t.Errorf("interval of %v with %v of CPU time, %d late operations", intervals[0].Length, intervals[0].CPU, intervals[0].Late.Count())
	}
}

func TestWarmupIsExcluded(t *testing.T) {
	w := workload(t, "c", ycsb.Properties{"operationcount": "100"})
	m, r, intervals := steady(t, Spec{Workload: w, Warmup: 1100 * time.Millisecond, Target: 1000})
	var warm int64
	var ts []int64
	for _, i := range intervals {
		ts = append(ts, i.T)
		if i.T < 0 {
			warm += i.OK
		}
	}
	if ts[0] != -2 || ts[1] != -1 || ts[len(ts)-1] != 0 {
		t.Errorf("intervals %v, want them from -2 on", ts)
	}
	if r.OK != 100 || warm != 1100 || m.calls != 1200 {
		t.Errorf("%d operations, %d in the warm-up, %d calls; want 100, 1100 (at the same target), 1200", r.OK, warm, m.calls)
	}
}

func TestOpenError(t *testing.T) {
	boom := errors.New("connection refused")
	var opened, closed atomic.Int64
	m := newMemory()
	_, err := Run(context.Background(), Spec{Workload: workload(t, "a", nil), Threads: 20}, func(ctx context.Context) (Client, error) {
		if opened.Add(1) == 10 {
			return (*memoryClient)(nil), boom // a typed nil pointer, as from a database's own function
		}
		return m.open(ctx)
	}, nil)
	if !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	closed.Add(int64(m.closed))
	if m.opened != m.closed {
		t.Errorf("%d clients opened, %d closed", m.opened, m.closed)
	}
}

func TestInvalidSpecs(t *testing.T) {
	good := workload(t, "a", nil)
	for want, s := range map[string]Spec{
		"phase":            {Workload: good, Phase: "walk"},
		"arrival":          {Workload: good, Arrival: "bursty", Target: 1},
		"needs a":          {Workload: good, Arrival: Poisson},
		"after_stall":      {Workload: good, AfterStall: "panic"},
		"threads -1":       {Workload: good, Threads: -1},
		"max_in":           {Workload: good, MaxInFlight: -1},
		"target -1":        {Workload: good, Target: -1},
		"negative":         {Workload: good, Duration: -1},
		"workload missing": {Operations: 1},
		"neither oper":     {Workload: workload(t, "a", ycsb.Properties{"operationcount": "0"})},
	} {
		_, err := Run(context.Background(), s, newMemory().open, nil)
		if !errors.Is(err, errSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
}

// A drive draws its keys for the operation count of its properties, whatever ends it. It warns of
// inserted records that no request can choose.
func TestKeyspaceOfOperationCount(t *testing.T) {
	for _, tt := range []struct {
		workload, count string
		keys            *record.Keys
		warns           bool
	}{
		{"e", "20", &record.Keys{ExpectedOperations: 20, ExpectedInserts: 2}, true},
		{"e", "1000000000", &record.Keys{ExpectedOperations: 1_000_000_000, ExpectedInserts: 100_000_000}, false},
		{"d", "20", nil, false}, // latest follows inserts
		{"a", "20", nil, false},
	} {
		w := workload(t, tt.workload, ycsb.Properties{"operationcount": tt.count})
		r, _ := drive(t, loaded(t, w), Spec{Workload: w, Operations: 500, Duration: time.Hour, Seed: 1})
		if d := cmp.Diff(tt.keys, r.Keys()); d != "" {
			t.Errorf("%s, %s operations: %s", tt.workload, tt.count, d)
		}
		if warns := r.KeyspaceWarning(); (warns != "") != tt.warns || strings.Contains(strings.Join(r.Warnings, "\n"),
			"larger operationcount") != tt.warns {
			t.Errorf("%s, %s operations: %q, warnings %q", tt.workload, tt.count, warns, r.Warnings)
		}
	}
}

// TestStopDuringDrain stops a drive after its time has run out, while it waits for its last
// answers. Its rate counts to its own end.
func TestStopDuringDrain(t *testing.T) {
	for _, c := range []struct {
		at, took time.Duration
		why      string
	}{
		{5 * time.Second, 4 * time.Second, stoppedAsked},
		{11*time.Second + 260*time.Millisecond, 10 * time.Second, stoppedDuration},
	} {
		g := &segment{start: time.Second, end: 11 * time.Second, now: func() time.Duration { return c.at }, stopped: make(chan struct{})}
		g.stop(stoppedAsked)
		if why, took := g.outcome(c.at + 40*time.Millisecond); why != c.why || took != c.took {
			t.Errorf("stopped at %v: %q after %v, want %q after %v", c.at, why, took, c.why, c.took)
		}
	}
}
