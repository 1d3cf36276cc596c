package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func work(t *testing.T, dir string) *Worker {
	t.Helper()
	w, err := OpenWorker(dir)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// attemptAt begins an attempt and returns a function that ends it.
func attemptAt(t *testing.T, w *Worker, id int) func(Trial) error {
	t.Helper()
	tw, err := w.OpenTrial(id)
	if err != nil {
		t.Fatal(err)
	}
	return tw.Finish
}

func collect(t *testing.T, w *Writer) []Trial {
	t.Helper()
	got, err := w.Collect()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func left(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, attemptsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Many workers finish the same trial at the same time while the writer collects: one of them is the result, it stays
// the one that the writer has read, and nothing else remains.
func TestRacingAttempts(t *testing.T) {
	const racers, rounds = 8, 25
	for range rounds {
		w := create(t, 1)
		var all sync.WaitGroup
		begin := make(chan struct{})
		errs := make(chan error, racers)
		for i := range racers {
			end := attemptAt(t, work(t, w.Dir()), 1)
			all.Go(func() {
				<-begin
				errs <- end(Trial{State: TrialOK, Goodput: float64(i + 1), Outcomes: Outcomes{OK: int64(i + 1)}})
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		close(begin)
		var seen []Trial
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			seen = append(seen, collect(t, w)...)
		}
		for range racers {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		stands, err := readResult(w.Dir(), 1)
		if err != nil || stands == nil {
			t.Fatalf("no valid result: %v", err)
		}
		if len(seen) != 1 || seen[0].Attempt != stands.Attempt || stands.Goodput != float64(stands.Outcomes.OK) {
			t.Fatalf("collected %d results, %+v; the valid one is %s", len(seen), seen, stands.Attempt)
		}
		if rest := left(t, w.Dir()); len(rest) > 0 {
			t.Fatalf("left behind: %q", rest)
		}
	}
}

// A machine considered dead ends its attempt after another worker has measured the trial, after that was replaced, and
// after the end of the run: each time it changes nothing.
func TestLateAttempt(t *testing.T) {
	w := create(t, 2)
	dead := []func(Trial) error{attemptAt(t, work(t, w.Dir()), 1), attemptAt(t, work(t, w.Dir()), 1), attemptAt(t, work(t, w.Dir()), 1)}
	late := Trial{State: TrialOK, Goodput: 666}
	check := func(when string, want float64, replaced int) {
		t.Helper()
		collect(t, w)
		got := open(t, w.Dir()).Summary.Trials[0]
		disk, err := readResult(w.Dir(), 1)
		if err != nil || disk == nil || got.Goodput != want || disk.Goodput != want || len(got.Replaced) != replaced {
			t.Fatalf("%s: the trial has %+v (%v), want %g and %d replaced", when, got, err, want, replaced)
		}
	}

	if err := attemptAt(t, work(t, w.Dir()), 1)(Trial{State: TrialOK, Goodput: 1, Verdict: Verdict{State: Suspect}}); err != nil {
		t.Fatal(err)
	}
	check("measured", 1, 0)
	if err := dead[0](late); err != nil {
		t.Fatal(err)
	}
	check("late, after the first result", 1, 0)

	again, slower := attemptAt(t, work(t, w.Dir()), 1), attemptAt(t, work(t, w.Dir()), 1)
	if err := again(Trial{State: TrialOK, Goodput: 2}); err != nil {
		t.Fatal(err)
	}
	check("run again", 2, 1)
	if err := errors.Join(dead[1](late), slower(late)); err != nil {
		t.Fatal(err)
	}
	check("late, after the second result", 2, 1)

	if err := attemptAt(t, work(t, w.Dir()), 2)(Trial{State: TrialOK}); err != nil {
		t.Fatal(err)
	}
	collect(t, w)
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := dead[2](late); err == nil {
		t.Error("an attempt that ended after the run was not reported as abandoned")
	}
	if got := open(t, w.Dir()).Summary.Trials; len(got) != 2 || got[0].Goodput != 2 {
		t.Errorf("after the run: %+v", got)
	}
}

// A failed result is reported, and replaced by a measured one, never the reverse.
func TestFailedAttemptsGiveWay(t *testing.T) {
	w := create(t, 1)
	end := func(x Trial) {
		t.Helper()
		if err := attemptAt(t, work(t, w.Dir()), 1)(x); err != nil {
			t.Fatal(err)
		}
	}
	state := func(want string, collected int) {
		t.Helper()
		if got := collect(t, w); len(got) != collected {
			t.Fatalf("collected %+v, want %d trials", got, collected)
		}
		if got := w.Summary().Trials; len(got) != 1 || got[0].State != want || len(left(t, w.Dir())) > 0 {
			t.Fatalf("the trial is %+v, left behind %q; want %s", got, left(t, w.Dir()), want)
		}
	}
	end(Trial{State: TrialInterrupted})
	if got := collect(t, w); len(got) > 0 || len(left(t, w.Dir())) > 0 {
		t.Fatalf("an interrupted attempt left %+v, %q", got, left(t, w.Dir()))
	}
	end(Trial{State: TrialFailed, Error: "no disk"})
	state(TrialFailed, 1)
	end(Trial{State: TrialOK})
	state(TrialOK, 1)
	end(Trial{State: TrialFailed})
	state(TrialOK, 0)
}

// A writer that died between the steps of a replacement, and a half-written result, lose nothing.
func TestCollectAfterACrash(t *testing.T) {
	w := create(t, 2)
	finish(t, w, 1, Trial{State: TrialOK, Goodput: 1})
	if err := attemptAt(t, work(t, w.Dir()), 1)(Trial{State: TrialOK, Goodput: 2}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(w.Dir(), replacedDir), 0o755),
		os.Rename(trialDir(w.Dir(), 1), filepath.Join(w.Dir(), replacedDir, "1-1")),
		os.Mkdir(trialDir(w.Dir(), 2), 0o755), os.WriteFile(filepath.Join(trialDir(w.Dir(), 2), trialFile), []byte(`{"id":`),
			0o644)); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, w); len(got) != 1 || got[0].Goodput != 2 || len(got[0].Replaced) != 1 {
		t.Fatalf("collected %+v", got)
	}
	if _, err := os.Stat(trialDir(w.Dir(), 2)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a partial result is valid: %v", err)
	}
	if got := w.Remaining(); len(got) != 1 || got[0].ID != 2 {
		t.Errorf("remaining: %+v", got)
	}
}

// If writing summary.json takes long, it is written rarely: readers find the missing results, a kill loses nothing, and
// the replacement of a recorded result is written immediately.
func TestSummaryLag(t *testing.T) {
	w := create(t, 4)
	lands := func(id int, goodput float64) {
		t.Helper()
		if err := attemptAt(t, work(t, w.Dir()), id)(Trial{State: TrialOK, Goodput: goodput}); err != nil {
			t.Fatal(err)
		}
		if got := collect(t, w); len(got) != 1 || got[0].ID != id {
			t.Fatalf("collected %+v", got)
		}
	}
	file := func(want ...float64) {
		t.Helper()
		var s Summary
		if err := readJSON(filepath.Join(w.Dir(), summaryFile), SummarySchema, &s); err != nil {
			t.Fatal(err)
		}
		var has []float64
		for _, x := range s.Trials {
			has = append(has, x.Goodput)
		}
		if fmt.Sprint(has) != fmt.Sprint(want) {
			t.Errorf("summary.json has %v, want %v", has, want)
		}
	}
	lands(3, 30)
	file(30)
	w.lag.took = time.Hour // as for a large run
	lands(1, 10)
	file(30)
	if got := open(t, w.Dir()).Summary.Trials; len(got) != 2 || got[0].Goodput != 10 {
		t.Errorf("readers got %+v", got)
	}
	lands(3, 31)
	file(10, 31)
	w.lag.took = time.Hour
	lands(2, 20)
	if err := w.Close(); err != nil { // like a kill
		t.Fatal(err)
	}
	file(10, 31)
	w, err := Resume(w.Dir(), false)
	if err != nil {
		t.Fatal(err)
	}
	file(10, 20, 31)
	w.lag.took = time.Hour
	lands(4, 40)
	file(10, 20, 31)
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	file(10, 20, 31, 40)
}

func TestTasks(t *testing.T) {
	plan := []Planned{{ID: 3, Task: 1}, {ID: 1, Task: 1}, {ID: 2, Task: 2}, {ID: 9}}
	var got []string
	for _, task := range Tasks(plan) {
		got = append(got, fmt.Sprint(task.ID, task.IDs()))
	}
	if fmt.Sprint(got) != "[1 [3 1] 2 [2] 9 [9]]" {
		t.Errorf("tasks: %v", got)
	}
}

// A plan of 100,000 trials is written, read and collected without quadratic work.
func TestLargePlan(t *testing.T) {
	run := testRun(0)
	run.Started = time.Time{}
	for i := range 100_000 {
		run.Plan = append(run.Plan, Planned{ID: i + 1, Task: i + 1, Cell: 1, Repetition: i + 1, Parameters: map[string]any{"scale": 1.0}})
	}
	w, err := Create(t.TempDir(), run)
	if err != nil {
		t.Fatal(err)
	}
	if err := attemptAt(t, work(t, w.Dir()), 70_000)(Trial{State: TrialOK}); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, w); len(got) != 1 || len(Tasks(w.Remaining())) != 99_999 {
		t.Errorf("collected %d, %d tasks remain", len(got), len(Tasks(w.Remaining())))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
