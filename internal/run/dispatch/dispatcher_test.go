package dispatch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/progress"
	"skerry/internal/database/all"
	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/runner"
)

const grid = `
name: grid
topology: pair
database: redis
workload: a
stop: {time: 10s}
matrix: {workload: [a, c], scale: [0.2, 1]}
`

func config(t testing.TB, sets ...string) Config {
	t.Helper()
	e, err := experiment.Parse("grid.yaml", []byte(grid), sets, false)
	if err != nil {
		t.Fatal(err)
	}
	return Config{On: "slurm", pace: &pace{every: time.Millisecond, used: func() time.Duration { return 0 }}, Config: runner.Config{
		Experiment: e, Source: record.File{Path: "grid.yaml", Text: grid, Set: sets}, Out: t.TempDir(), Databases: all.Databases(), Exe: "skerry",
		Progress: progress.New(io.Discard, nil), Log: slog.New(slog.DiscardHandler),
	}}
}

// check fails the test unless the run is complete, with each trial once, and nothing remains.
func check(t *testing.T, dir string, trials int) *record.Dir {
	t.Helper()
	d, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Summary.Complete || len(d.Summary.Trials) != trials || d.Run.Finished.IsZero() {
		t.Fatalf("complete %v, %d of %d trials, finished %v", d.Summary.Complete, len(d.Summary.Trials), trials, d.Run.Finished)
	}
	for _, x := range d.Summary.Trials {
		if x.Goodput != float64(x.ID) {
			t.Errorf("trial %d has the result of another trial: %+v", x.ID, x)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "attempts", "*")); err != nil || len(left) > 0 {
		t.Errorf("leftovers: %q", left)
	}
	s, err := ReadState(dir)
	if err != nil || len(s.Open) > 0 || s.Tasks.Running+s.Tasks.Waiting > 0 {
		t.Errorf("the state is %+v (%v)", s, err)
	}
	return d
}

// Tasks that end without results, each in a different way, are distinguished and resubmitted.
func TestTasksAreResubmittedUntilResultsArrive(t *testing.T) {
	c := newCluster(t, 3)
	faults := []string{"NODE_FAIL", "CANCELLED", "PREEMPTED", "TIMEOUT", "FAILED", "COMPLETED"}
	for i, state := range faults {
		c.fault(t, state, 2*i+1)
	}
	c.fault(t, "NODE_FAIL", 3)
	dir, err := Run(t.Context(), config(t, "repetitions=5"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, dir, 20)
	s, err := ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, trouble := range s.Tasks.Troubles {
		states = append(states, trouble.State)
	}
	slices.Sort(states)
	if got := strings.Join(states, ","); got != "cancelled,ended,failed,lost,lost,preempted,timed out" {
		t.Errorf("troubles: %s", got)
	}
}

func TestTasksAreAbandonedAfterLimit(t *testing.T) {
	c := newCluster(t, 1)
	for _, state := range []string{"NODE_FAIL", "CANCELLED", "TIMEOUT"} {
		c.fault(t, state, 2)
	}
	cfg := config(t)
	dir, err := Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "1 task ended without results 3 times") {
		t.Fatalf("%v", err)
	}
	if err := Resume(t.Context(), dir, cfg); err != nil {
		t.Fatal(err)
	}
	check(t, dir, 4)
}

// A machine that immediately ends its tasks without results gets no more of them, if others measure.
func TestFaultyMachinesAreExcluded(t *testing.T) {
	c := newCluster(t, 4)
	if err := os.WriteFile(filepath.Join(c.dir, "barren-node0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := Run(t.Context(), config(t, "repetitions=3"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, dir, 12)
	script, err := os.ReadFile(filepath.Join(dir, "engine", "2.sbatch"))
	if err != nil || !strings.Contains(string(script), "#SBATCH --exclude=node0\n") {
		t.Errorf("node0 was not avoided (%v):\n%s", err, script)
	}
}

// Trials that share a cluster are submitted together.
func TestSharedClustersAreOneTask(t *testing.T) {
	c := newCluster(t, 1)
	dir, err := Run(t.Context(), config(t, "reuse=true", "repetitions=3"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, dir, 12)
	jobs, err := c.jobs()
	if err != nil || len(jobs) != 1 || len(jobs[0].Lines) != 3 || strings.Count(jobs[0].Lines[0], ",") != 3 {
		t.Errorf("jobs %+v (%v)", jobs, err)
	}
}

func TestSuspectTrialsAreRunAgain(t *testing.T) {
	c := newCluster(t, 2)
	c.fault(t, "suspect", 3)
	dir, err := Run(t.Context(), config(t))
	if err != nil {
		t.Fatal(err)
	}
	d := check(t, dir, 4)
	if got := d.Summary.Trials[2]; got.Verdict.State != record.Valid || len(got.Replaced) != 1 {
		t.Errorf("trial 3: %+v", got)
	}
}

// An interrupted controller leaves its tasks, and the next one collects their results without resubmission.
func TestInterruptedRunsAreResumed(t *testing.T) {
	c := newCluster(t, -1)
	cfg := config(t, "repetitions=4")
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Progress = progress.New(said(func(line string) {
		if strings.Contains(line, "16 waiting") {
			cancel()
		}
	}), func() int { return 0 })
	dir, err := Run(ctx, cfg)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "with 16 tasks left at slurm") {
		t.Fatalf("%v", err)
	}
	jobs, err := c.jobs()
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	for _, line := range jobs[0].Lines[:5] { // unobserved
		if _, err := c.work(dir, "node0", line); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(clusterVariable+"_AT_ONCE", "4")
	if err := Resume(t.Context(), dir, cfg); err != nil {
		t.Fatal(err)
	}
	check(t, dir, 16)
	if jobs, err := c.jobs(); err != nil || len(jobs) != 1 {
		t.Errorf("%d jobs (%v): tasks were handed over twice", len(jobs), err)
	}
}

// Printed batches that a user has edited and submitted are found and followed; the remaining tasks are submitted.
func TestPrintedBatchesAreFound(t *testing.T) {
	c := newCluster(t, 2)
	for _, submitted := range []bool{true, false} {
		cfg := config(t)
		var printed strings.Builder
		dir, err := Print(t.Context(), cfg, &printed)
		if err != nil {
			t.Fatal(err)
		}
		before, err := c.jobs()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "engine", "1.printed")
		if text, err := os.ReadFile(file); err != nil || string(text) != printed.String() {
			t.Fatalf("the file has unexpected contents (%v)", err)
		}
		if submitted {
			edited := strings.Replace(printed.String(), "#SBATCH", "#SBATCH --account=lab\n#SBATCH", 1)
			if err := os.WriteFile(file, []byte(edited), 0o755); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("sbatch", file).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		if err := Resume(t.Context(), dir, cfg); err != nil {
			t.Fatal(err)
		}
		check(t, dir, 4)
		if jobs, err := c.jobs(); err != nil || len(jobs) != len(before)+1 {
			t.Errorf("after submission by hand %v: %d more jobs (%v), want one", submitted, len(jobs)-len(before), err)
		}
	}
}

func TestInterruptedRunsAreCancelled(t *testing.T) {
	c := newCluster(t, -1)
	cfg := config(t)
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Progress = progress.New(said(func(line string) {
		if strings.Contains(line, "4 waiting") {
			cancel()
		}
	}), func() int { return 0 })
	cfg.Cancel = func() bool { return true }
	dir, err := Run(ctx, cfg)
	if err == nil || !strings.Contains(err.Error(), "cancelled after 0 of 4 trials") {
		t.Fatalf("%v", err)
	}
	if jobs, err := c.jobs(); err != nil || jobs[0].States[0] != "CANCELLED" {
		t.Errorf("%+v, %v", jobs, err)
	}
	t.Setenv(clusterVariable+"_AT_ONCE", "4")
	if err := Resume(t.Context(), dir, cfg); err != nil {
		t.Fatal(err)
	}
	check(t, dir, 4)
}

func TestUnsharedRunDirectory(t *testing.T) {
	c := newCluster(t, 1)
	c.fault(t, "FAILED", 1)
	c.fault(t, "FAILED", 2)
	if err := os.WriteFile(filepath.Join(c.dir, "unshared"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), config(t))
	if !errors.Is(err, executor.ErrFatal) || !strings.Contains(err.Error(), "does not see the run directory") {
		t.Fatalf("%v", err)
	}
	jobs, err := c.jobs()
	if err != nil || slices.Contains(jobs[0].States, "PENDING") {
		t.Errorf("the other tasks were not cancelled: %+v (%v)", jobs, err)
	}
}

func TestUnavailableExecutor(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Run(t.Context(), config(t)); !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("without sbatch: %v", err)
	}
	c := config(t)
	c.On = "slum"
	if _, err := Run(t.Context(), c); !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("another engine: %v", err)
	}
	if entries, err := os.ReadDir(c.Out); err != nil || len(entries) > 0 {
		t.Errorf("a run directory was created: %v (%v)", entries, err)
	}
}

// Only one controller manages a run.
func TestTwoControllers(t *testing.T) {
	newCluster(t, -1)
	cfg := config(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var second error
	cfg.Progress = progress.New(said(func(line string) {
		if strings.Contains(line, "4 waiting") && second == nil {
			d := config(t)
			d.Experiment = cfg.Experiment
			second = Resume(ctx, filepath.Join(cfg.Out, "latest"), d)
			cancel()
		}
	}), func() int { return 0 })
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) || !errors.Is(second, record.ErrBusy) {
		t.Errorf("the first controller returned %v, the second %v", err, second)
	}
}

// said is a writer that passes each write to a function.
type said func(string)

func (s said) Write(p []byte) (int, error) { s(string(p)); return len(p), nil }

var _ io.Writer = said(nil)

func TestPace(t *testing.T) {
	used := time.Duration(0)
	p := &pace{every: 2 * time.Second, used: func() time.Duration { return used }}
	for _, step := range []struct{ cost, want time.Duration }{
		{time.Millisecond, 2 * time.Second}, {80 * time.Millisecond, 10 * time.Second}, {0, 2 * time.Second},
		{4 * time.Second, maxPollWait}, {0, 200 * time.Second}, {0, 2 * time.Second},
	} {
		p.begin()
		used += step.cost
		if got := p.next(); got != step.want {
			t.Errorf("after %v: %v, want %v", step.cost, got, step.want)
		}
	}
}

// An engine may kill a task before the undo of its events runs.
func TestCommandEventsNeedThisMachine(t *testing.T) {
	text := "name: x\ntopology: pair\ndatabase: redis\nworkload: a\nevents: [{at: 1s, command: ./drain.sh}]\n"
	e, err := experiment.Parse("x.yaml", []byte(text), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), Config{Config: runner.Config{Experiment: e}, On: "slurm"})
	if !errors.Is(err, executor.ErrUnavailable) || !strings.Contains(err.Error(), "do: ./drain.sh") || advice.Of(err) == "" {
		t.Errorf("%v", err)
	}
}

// An engine that chooses another machine or pod after a kill would leave the table of the killed task.
func TestClustersOfTheUserNeedMachinesFile(t *testing.T) {
	for _, tt := range []struct{ cluster, on, want string }{
		{`["10.0.0.1:6379"]`, "slurm", "would leave its table on the cluster (10.0.0.1:6379)"},
		{`["10.0.0.1:6379"]`, "kubernetes", "would leave its table on the cluster (10.0.0.1:6379)"},
		{"{servers_from: ./list.sh}", "machines.yaml", "commands of a cluster run on the machine that runs skerry (servers_from: ./list.sh)"},
	} {
		text := "name: x\ndatabase: {name: redis, cluster: " + tt.cluster + "}\nworkload: a\n"
		e, err := experiment.Parse("x.yaml", []byte(text), nil, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Run(t.Context(), Config{Config: runner.Config{Experiment: e}, On: tt.on})
		if !errors.Is(err, executor.ErrUnavailable) || !strings.Contains(err.Error(), tt.want) || advice.Of(err) == "" {
			t.Errorf("%s on %s: %v, want %q", tt.cluster, tt.on, err, tt.want)
		}
	}
}
