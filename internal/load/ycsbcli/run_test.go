package ycsbcli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// databases returns a registry of the null database, which records the properties of its clients.
func databases(seen *map[string]string) load.OpenDatabase {
	return func(name string) (func(context.Context, map[string]string) (load.Client, error), error) {
		if name != load.NullName {
			return nil, errors.New("unknown database " + name)
		}
		db := new(load.NullDatabase)
		return func(ctx context.Context, p map[string]string) (load.Client, error) {
			if seen != nil {
				*seen = p
			}
			return db.Open(ctx, p)
		}, nil
	}
}

func TestPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	const mine = "recordcount=50\noperationcount=60\nthreadcount=3\ntarget=70\nmaxexecutiontime=80\n"
	if err := os.WriteFile("mine", []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	// A file takes precedence over a built-in workload of the same name.
	if err := os.WriteFile("workloadb", []byte("recordcount=7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		o        Options
		want     func(load.Spec) bool
		interval string
	}{
		{"a file", Options{Files: []string{"mine"}},
			func(s load.Spec) bool {
				return s.Workload.RecordCount == 50 && s.Operations == 60 && s.Threads == 3 && s.Target == 70 && s.Duration == 80*time.Second
			}, ycsb.IntervalBoth},
		{"flags over properties", Options{Files: []string{"mine"}, Threads: 9, Target: 10, Duration: time.Second},
			func(s load.Spec) bool {
				return s.Threads == 9 && s.Target == 10 && s.Operations == 0 && s.Duration == time.Second
			}, ycsb.IntervalBoth},
		{"-p over files, the last file over the first", Options{Files: []string{"mine", "workloads/workloadc"},
			Set: []string{"recordcount=5", "target=0", "table=a=b"}},
			func(s load.Spec) bool {
				return s.Workload.RecordCount == 5 && s.Operations == 1000 && s.Target == 0 && s.Workload.Table == "a=b" && s.Workload.Mix.Read == 1
			}, ycsb.IntervalOp},
		{"a file instead of a built-in workload", Options{Files: []string{"workloadb"}, Set: []string{"operationcount=1"}},
			func(s load.Spec) bool { return s.Workload.RecordCount == 7 }, ycsb.IntervalOp},
		{"a requested interval", Options{Files: []string{"mine"}, Set: []string{"measurement.interval=intended"}},
			func(load.Spec) bool { return true }, ycsb.IntervalIntended},
	} {
		p, err := c.o.plan()
		if err != nil || !c.want(p.spec) || p.settings.Interval != c.interval {
			t.Errorf("%s: %v: %+v, interval %s", c.name, err, p.spec, p.settings.Interval)
		}
	}
	for _, o := range []Options{
		{Files: []string{"none"}}, {Files: []string{filepath.Join("elsewhere", "workloada")}},
		{Files: []string{"mine"}, Set: []string{"recordcount"}},
		{Files: []string{"mine"}, Set: []string{"=5"}}, {Files: []string{"mine"}, Arrival: "sometimes"}, {Files: []string{"."}},
	} {
		if p, err := o.plan(); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %+v, %v", o, p, err)
		}
	}
}

func TestUnusedSettingsWarn(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "recordcount=50\nthreadcount=3\nmeasurementtype=raw\nredis.host=a\nmongodb.url=b\ntreadcount=4\nthreadcount=5\n"
	if err := os.WriteFile("mine", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Options{Files: []string{"workloada", "mine"}, Set: []string{"redis.port=1", "redis.prot=1"},
		ClientProperties: []string{"redis.host", "redis.port"}}.plan()
	want := []string{
		"mine:2: threadcount=3 is not used: line 7 sets it again",
		"mine:3: measurementtype=raw is not used: latencies are always recorded in HdrHistograms",
		"mine:5: mongodb.url=b is not used: neither YCSB nor the database's client has a property of this name",
		"mine:6: treadcount=4 is not used: the name is unknown: did you mean threadcount?",
		"-p redis.prot=1 is not used: the name is unknown: did you mean redis.port?",
	}
	if d := cmp.Diff(want, p.warnings); err != nil || d != "" || p.spec.Threads != 5 {
		t.Errorf("%d threads, %v\n%s", p.spec.Threads, err, d)
	}
}

func TestClientsGetAllProperties(t *testing.T) {
	var seen map[string]string
	o := Options{Phase: load.PhaseLoad, Database: load.NullName, Files: []string{"workloade"}, Set: []string{"redis.host=h"}}
	if err := Run(context.Background(), o, databases(&seen), new(bytes.Buffer), new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	// The Redis client keeps an index when scanproportion asks for it.
	if seen["redis.host"] != "h" || seen["scanproportion"] != "0.95" {
		t.Errorf("a client was opened with %v", seen)
	}
}

func TestStatusEverySecond(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	o := Options{
		Phase: load.PhaseRun, Database: load.NullName, Files: []string{"workloadc"}, Set: []string{"status.interval=1", "label=lab "},
		Target: 200, Duration: 2200 * time.Millisecond, Status: true,
	}
	if err := Run(context.Background(), o, databases(nil), &out, &errs); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^lab \d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3} (\d+) sec: (\d+) operations;(?: [\d.]+ current ops/sec;)?` +
		`(?: est completion in \d seconds?)?(?: \[READ: Count=(\d+), .*\])?$`)
	total, lines := 0, 0
	for _, text := range strings.Split(strings.TrimSpace(errs.String()), "\n") {
		if strings.HasPrefix(text, "warning: ") { // on a busy machine
			continue
		}
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("not a status line: %s", text)
		}
		lines++
		total += atoi(m[3])
		if atoi(m[2]) != total {
			t.Errorf("the counts of the lines sum up to %d: %s", total, text)
		}
	}
	if lines != 4 || total != 440 {
		t.Errorf("%d lines, %d operations, want 4 and 440:\n%s", lines, total, errs.String())
	}
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}

func TestInterruptedRunPrintsResult(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	inner := databases(nil)
	open := func(name string) (func(context.Context, map[string]string) (load.Client, error), error) {
		f, err := inner(name)
		return func(c context.Context, p map[string]string) (load.Client, error) {
			time.AfterFunc(50*time.Millisecond, cancel)
			return f(c, p)
		}, err
	}
	var out bytes.Buffer
	o := Options{Phase: load.PhaseRun, Database: load.NullName, Files: []string{"workloadc"}, Duration: time.Hour}
	err := Run(ctx, o, open, &out, new(bytes.Buffer))
	if !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "[READ], Return=OK, ") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
