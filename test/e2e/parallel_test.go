package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"skerry/internal/record"
	"skerry/test/testkit"
)

// sided uses little of the machine, so that other trials can run at the same time.
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

// The first trial runs alone and shows the use of one; then others run in parallel. Each is judged separately, and one
// that is suspect for a transient reason is repeated alone.
func TestTrialsRunInParallel(t *testing.T) {
	b := newBench(t)
	r := b.run(0, "run", "--parallel", "3", "--retries", "1", "--set", "repetitions=3",
		"--set", "fidelity={client_late: 1ns, host_cpu: 100%, client_cpu: 100%}", b.write("sided.yaml", sided))
	contains(t, r.stderr.String(), "1/3", "3/3", "retry of trial 3")
	s := b.summary(b.path("runs/latest"))
	if !s.Complete || len(s.Trials) != 3 {
		t.Fatalf("%d trials, complete %v", len(s.Trials), s.Complete)
	}
	beside := 0
	for _, x := range s.Trials {
		if x.State != record.TrialOK || x.Fidelity.OwnCPU <= 0 || x.Fidelity.OwnMemory <= 0 || len(x.Fidelity.Links) == 0 {
			t.Errorf("trial %d: %s, %g cores, %d bytes, %d links", x.ID, x.State, x.Fidelity.OwnCPU, x.Fidelity.OwnMemory, len(x.Fidelity.Links))
		}
		if len(x.Replaced) != 1 || x.Concurrent != 0 {
			t.Fatalf("trial %d was repeated %d times, next to %d other trials", x.ID, len(x.Replaced), x.Concurrent)
		}
		var first record.Trial
		text, err := os.ReadFile(filepath.Join(b.path("runs/latest"), x.Replaced[0].Dir, "trial.json"))
		if err == nil {
			err = json.Unmarshal(text, &first)
		}
		if err != nil || first.Verdict.State != record.Suspect || len(first.Fidelity.Links) != len(x.Fidelity.Links) {
			t.Errorf("the first attempt of trial %d: %v, %+v", x.ID, err, first.Verdict)
		}
		beside = max(beside, first.Concurrent)
	}
	if beside == 0 {
		testkit.Lacks(t, testkit.Quiet, errors.New("no trial ran in parallel with another"))
	}
}

// An interrupt ends all running trials; --resume continues them.
func TestInterruptedParallelTrialsResume(t *testing.T) {
	b := newBench(t)
	r := b.command("run", "--parallel", "2", b.write("sided.yaml", sided)).start()
	b.await("two trials at the same time, each on a lab of its own", func() bool {
		under, err := filepath.Glob(b.path("runs/latest/trials/*.partial"))
		labs, wrong := filepath.Glob(b.path("state/labs/*"))
		return err == nil && wrong == nil && len(under) == 2 && len(labs) == 2
	})
	r.signal(syscall.SIGINT)
	if got := r.wait(); got != 130 {
		t.Fatalf("exit %d, want 130\n%s", got, r.stderr.String())
	}
	contains(t, r.stderr.String(), "interrupted after", "resume with: skerry run --resume")
	b.run(0, "run", "--resume", "runs/latest")
	if s := b.summary(b.path("runs/latest")); !s.Complete || len(s.Trials) != 4 {
		t.Errorf("%d trials, complete %v", len(s.Trials), s.Complete)
	}
}
