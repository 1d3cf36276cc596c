package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skerry/internal/record"
)

// Other commands measure trials of an interrupted run, two of them the same trial: each has one result, which --resume
// accepts and a second --only does not change.
func TestOnlyMeasuresSelectedTrials(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("small.yaml", small)).start()
	b.await("the first trial", func() bool {
		return exists(b.path("runs/latest/summary.json")) && len(b.summary(b.path("runs/latest")).Trials) > 0
	})
	r.signal(syscall.SIGINT)
	if got := r.wait(); got != 130 {
		t.Fatalf("exit %d", got)
	}
	dir := b.path("runs/latest")
	last := b.plan(dir)[3].ID
	only := strconv.Itoa(last)
	one, two := b.command("run", "--resume", dir, "--only", only).start(), b.command("run", "--resume", dir, "--only", only).start()
	if got, other := one.wait(), two.wait(); got != 0 || other != 0 {
		t.Fatalf("exits %d and %d\n%s\n%s", got, other, one.stderr.String(), two.stderr.String())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "attempts", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
	contains(t, b.run(0, "run", "--resume", dir, "--only", only).stderr.String(), "already has a result")
	first := result(t, dir, last)

	b.run(0, "run", "--resume", dir)
	s := b.summary(dir)
	if !s.Complete || len(s.Trials) != 4 {
		t.Fatalf("complete %v, %d trials", s.Complete, len(s.Trials))
	}
	if now := result(t, dir, last); now.Attempt == "" || now.Attempt != first.Attempt || now.Goodput != first.Goodput {
		t.Errorf("the result of trial %d changed: %s with %g ops/s, now %s with %g", last, first.Attempt, first.Goodput, now.Attempt, now.Goodput)
	}
	if text := b.run(2, "run", "--resume", dir, "--only", "x").stderr.String(); !strings.Contains(text, "invalid trials") {
		t.Error(text)
	}
}

func result(t *testing.T, dir string, id int) record.Trial {
	t.Helper()
	d, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range d.Summary.Trials {
		if x.ID == id {
			return x
		}
	}
	t.Fatalf("trial %d has no result", id)
	return record.Trial{}
}
