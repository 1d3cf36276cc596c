package e2e

import (
	"path/filepath"
	"syscall"
	"testing"

	"skerry/internal/record"
)

// sided uses little of the machine, so that there is room beside it.
const sided = `
name: sided
engine: userspace
topology: "ring:3,rtt=20ms"
database: redis
workload: {name: a, records: 100, threads: 1}
warmup: 0s
stop: {time: 3s}
repetitions: 4
retries: 0
`

// The first trial runs alone, which tells what one uses; then others run beside each other, and all
// have their results.
func TestTrialsSideBySide(t *testing.T) {
	b := newBench(t)
	r := b.run(0, "run", "--parallel", "3", b.write("sided.yaml", sided))
	contains(t, r.stderr.String(), "1/4", "4/4")
	s := b.summary(b.path("runs/latest"))
	if !s.Complete || len(s.Trials) != 4 {
		t.Fatalf("%d trials, complete %v", len(s.Trials), s.Complete)
	}
	beside := 0
	for _, x := range s.Trials {
		if x.State != record.TrialOK || x.Fidelity.OwnCPU <= 0 || x.Fidelity.OwnMemory <= 0 {
			t.Errorf("trial %d: %s, %g cores, %d bytes", x.ID, x.State, x.Fidelity.OwnCPU, x.Fidelity.OwnMemory)
		}
		beside = max(beside, x.Beside)
	}
	if beside == 0 {
		t.Error("no trial ran beside another")
	}
}

// An interrupt ends all trials that run; --resume goes on with them.
func TestSideBySideInterrupted(t *testing.T) {
	b := newBench(t)
	r := b.command("run", "--parallel", "2", b.write("sided.yaml", sided)).start()
	b.await("two trials at the same time", func() bool {
		under, err := filepath.Glob(b.path("runs/latest/trials/*.partial"))
		return err == nil && len(under) == 2
	})
	r.signal(syscall.SIGINT)
	if got := r.wait(); got != 130 {
		t.Fatalf("exit %d, want 130\n%s", got, r.stderr.String())
	}
	contains(t, r.stderr.String(), "interrupted after", "go on with: skerry run --resume")
	b.run(0, "run", "--resume", "runs/latest")
	if s := b.summary(b.path("runs/latest")); !s.Complete || len(s.Trials) != 4 {
		t.Errorf("%d trials, complete %v", len(s.Trials), s.Complete)
	}
}
