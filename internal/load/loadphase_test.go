package load

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/ycsb"
)

// YCSB's load threads end silently if one insert in five fails; here the insert is retried.
func TestLoadRetriesUntilAcknowledged(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "500", "dataintegrity": "true"})
	m := newMemory()
	var mu sync.Mutex
	failed := map[string]bool{}
	m.before = func(_ context.Context, n int, _ ycsb.Kind, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if n%5 == 0 && !failed[key] {
			failed[key] = true
			if n%2 == 0 {
				return Unknown("reset", "ams", errors.New("connection reset"))
			}
			return Failed("loading", "ams", errors.New("loading the data set"))
		}
		return nil
	}
	r, err := Run(context.Background(), Spec{Phase: PhaseLoad, Workload: w, Threads: 8}, m.open, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK != 500 || r.Failed != 0 || r.Unknown != 0 || r.Retries != int64(len(failed)) || r.Retries == 0 {
		t.Errorf("%+v, %d retries of %d failures", r.Counts, r.Retries, len(failed))
	}
	for n := range int64(500) {
		if len(m.records[w.Key(n)]) != 10 {
			t.Fatalf("record %d has %d fields", n, len(m.records[w.Key(n)]))
		}
	}
	if len(m.records) != 500 || r.Stopped != stoppedOperations {
		t.Errorf("%d records, stopped by %s", len(m.records), r.Stopped)
	}
	if len(r.Errors) != 2 || r.Errors[0].Count+r.Errors[1].Count != r.Retries {
		t.Errorf("errors %+v", r.Errors)
	}
}

func TestLoadGivesUpAndListsMissing(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "20"})
	m := newMemory()
	m.before = func(_ context.Context, _ int, _ ycsb.Kind, key string) error {
		if key == w.Key(3) || key == w.Key(7) {
			return Failed("readonly", "", errors.New("a replica takes no writes"))
		}
		return nil
	}
	r, err := Run(context.Background(), Spec{Phase: PhaseLoad, Workload: w, Threads: 4, GiveUp: 100 * time.Millisecond}, m.open, nil)
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "2 of 20") ||
		!strings.Contains(err.Error(), "a replica takes no writes") {
		t.Errorf("error %v", err)
	}
	if r.OK != 18 || r.Failed != 2 || r.Unacknowledged != 2 || r.Stopped != stoppedGaveUp {
		t.Errorf("%+v, %d unacknowledged, stopped by %s", r.Counts, r.Unacknowledged, r.Stopped)
	}
	got := map[string]bool{}
	for _, k := range r.UnacknowledgedKeys {
		got[k] = true
	}
	if d := cmp.Diff(map[string]bool{w.Key(3): true, w.Key(7): true}, got); d != "" {
		t.Error(d)
	}
}

func TestStoppedLoadListsMissing(t *testing.T) {
	for _, target := range []float64{0, 10_000} {
		w := workload(t, "a", ycsb.Properties{"recordcount": "300"})
		m := newMemory()
		ctx, cancel := context.WithCancel(context.Background())
		m.before = func(_ context.Context, n int, _ ycsb.Kind, _ string) error {
			if n >= 100 {
				cancel()
				return Failed("down", "", errors.New("down"))
			}
			return nil
		}
		r, err := Run(ctx, Spec{Phase: PhaseLoad, Workload: w, Threads: 4, Target: target}, m.open, nil)
		cancel()
		if !errors.Is(err, ErrIncomplete) || r.Stopped != stoppedAsked {
			t.Errorf("%v, stopped by %s", err, r.Stopped)
		}
		if r.Unacknowledged != int64(300-len(m.records)) || len(r.UnacknowledgedKeys) != int(r.Unacknowledged) {
			t.Errorf("%d unacknowledged, %d listed; the database has %d of 300", r.Unacknowledged, len(r.UnacknowledgedKeys), len(m.records))
		}
		for _, k := range r.UnacknowledgedKeys {
			if _, there := m.records[k]; there {
				t.Errorf("%s is listed as missing and is there", k)
			}
		}
	}
}

func TestUnsupportedInsertEndsLoad(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "3"})
	m := newMemory()
	m.before = func(context.Context, int, ycsb.Kind, string) error { return ErrUnsupported }
	r, err := Run(context.Background(), Spec{Phase: PhaseLoad, Workload: w}, m.open, nil)
	if !errors.Is(err, ErrIncomplete) || r.Retries != 0 || m.calls != 3 {
		t.Errorf("%v after %d calls", err, m.calls)
	}
}

func TestVerifySeries(t *testing.T) {
	w := workload(t, "c", ycsb.Properties{"dataintegrity": "true", "operationcount": "400"})
	m := loaded(t, w)
	n := 0
	m.corrupt = func(_ string, fields []Field) []Field {
		switch n++; {
		case n%10 == 0:
			return fields[:0]
		case n%10 == 1:
			fields[0].Value[0] ^= 1
		}
		return fields
	}
	r, _ := drive(t, m, Spec{Workload: w})
	want := map[string]int64{"OK": 320, "UNEXPECTED_STATE": 40, "ERROR": 40}
	if v := r.Operations["VERIFY"]; v == nil || !cmp.Equal(want, v.Returns) || v.Latency.Service.Count() != 400 {
		t.Errorf("VERIFY is %+v", v)
	}
	if r.OK != 400 {
		t.Errorf("%d reads are ok, want 400: a read that does not verify was still answered", r.OK)
	}
}

// In workloads D and E no operation chooses an unacknowledged record, even if inserts fail.
func TestFailedInsertsAreNeverRead(t *testing.T) {
	w := workload(t, "d", ycsb.Properties{"operationcount": "20000", "insertproportion": "0.3", "readproportion": "0.7"})
	m := loaded(t, w)
	var inserts int
	m.before = func(_ context.Context, _ int, k ycsb.Kind, _ string) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if k == ycsb.Insert {
			if inserts++; inserts%7 == 0 {
				return Failed("oom", "", errors.New("no memory"))
			}
		}
		return nil
	}
	r, _ := drive(t, m, Spec{Workload: w, Threads: 8})
	if read := r.Operations["READ"]; read.Failed != 0 || read.OK == 0 {
		t.Errorf("%d reads failed, %d are ok: %+v", read.Failed, read.OK, r.Errors)
	}
	if insert := r.Operations["INSERT"]; insert.Failed != int64(inserts/7) {
		t.Errorf("%d inserts failed, want %d", insert.Failed, inserts/7)
	}
}

// counting is a memory whose clients count.
type counting struct {
	memoryClient
	n int64
}

func (c *counting) Count(context.Context, string) (int64, error) { return c.n, nil }

func TestVerify(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "200"})
	spec := Spec{Phase: PhaseLoad, Workload: w, Threads: 5}
	ctx := context.Background()

	m := loaded(t, w)
	calls := 0
	m.before = func(_ context.Context, n int, _ ycsb.Kind, _ string) error {
		if calls++; calls == 3 {
			return Unknown("reset", "", errors.New("connection reset"))
		}
		return nil
	}
	spec.Threads = 1
	if v, err := Verify(ctx, spec, m.open); err != nil || v.Method != "read" || v.Records != 200 || calls != 201 {
		t.Errorf("%+v in %d reads: %v", v, calls, err)
	}
	m.before = nil
	spec.Threads = 5

	for _, c := range []struct {
		counted int64
		method  string
	}{{200, "count"}, {1200, "read"}, {199, "read"}} {
		open := func(context.Context) (Client, error) { return &counting{memoryClient{m}, c.counted}, nil }
		if v, err := Verify(ctx, spec, open); err != nil || v.Method != c.method || v.Records != 200 {
			t.Errorf("a database that reports %d records: %+v, %v", c.counted, v, err)
		}
	}

	delete(m.records, w.Key(17))
	v, err := Verify(ctx, spec, m.open)
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), w.Key(17)) || v.Missing != 1 || v.Records != 199 {
		t.Errorf("%+v, %v", v, err)
	}

	m.before = func(context.Context, int, ycsb.Kind, string) error { return errors.New("gone") }
	if _, err := Verify(ctx, spec, m.open); err == nil || errors.Is(err, ErrIncomplete) {
		t.Errorf("a database that does not answer: %v", err)
	}
}

func TestReport(t *testing.T) {
	w := workload(t, "f", ycsb.Properties{"operationcount": "400"})
	m := loaded(t, w)
	m.before = func(_ context.Context, n int, k ycsb.Kind, _ string) error {
		if k == ycsb.Update && n%4 == 0 {
			return Failed("oom", "", errors.New("no memory"))
		}
		return nil
	}
	r, _ := drive(t, m, Spec{Workload: w})
	names := func(interval string) string {
		var out []string
		for _, s := range r.Report(interval, ycsb.DefaultPercentiles()).Series {
			out = append(out, s.Name)
		}
		return strings.Join(out, " ")
	}
	const op = "READ UPDATE UPDATE-FAILED READ-MODIFY-WRITE READ-MODIFY-WRITE-FAILED"
	if got := names(ycsb.IntervalOp); got != op {
		t.Errorf("series %s", got)
	}
	if got := names(ycsb.IntervalIntended); got != op {
		t.Errorf("series %s", got)
	}
	want := op + " Intended-READ Intended-UPDATE Intended-UPDATE-FAILED Intended-READ-MODIFY-WRITE Intended-READ-MODIFY-WRITE-FAILED"
	if got := names(ycsb.IntervalBoth); got != want {
		t.Errorf("series %s", got)
	}
	report := r.Report(ycsb.IntervalOp, nil)
	if report.OK != r.OK || report.Ended != 400 || report.Series[1].Returns["OOM"] != r.Failed {
		t.Errorf("%d ok of %d, returns %v", report.OK, report.Ended, report.Series[1].Returns)
	}
}
