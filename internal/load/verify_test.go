package load

import (
	"context"
	"errors"
	"strings"
	"testing"

	"skerry/internal/load/ycsb"
)

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
			t.Errorf("a database that counts %d: %+v, %v", c.counted, v, err)
		}
	}

	delete(m.records, w.Key(17))
	v, err := Verify(ctx, spec, m.open)
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), w.Key(17)) || v.Missing != 1 || v.Records != 199 {
		t.Errorf("%+v, %v", v, err)
	}

	m.before = func(context.Context, int, ycsb.Kind, string) error { return errors.New("gone") }
	if _, err := Verify(ctx, spec, m.open); err == nil || errors.Is(err, ErrIncomplete) {
		t.Errorf("a database that answers nothing: %v", err)
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
