package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"skerry/internal/record"
	"skerry/test/testkit"
)

// small is an experiment of a few seconds per trial that covers everything: three sites with Redis, two workloads at
// two scales.
const small = `
name: small
topology:
  sites: [Oslo, Bergen, Kirkenes]
  defaults: {rtt: 20ms, bandwidth: 200mbit}
client: Oslo
database: redis
workload: {name: a, records: 300, threads: 8}
stop: {time: 2s}
warmup: 1s
retries: 0 # tests count what was run
matrix:
  workload: [a, e]
  scale: [0.2, 1]
`

// one is a trial that measures until it is ended.
const one = `
name: one
engine: userspace # tests kill its process
topology:
  sites: [Oslo, Bergen, Kirkenes]
  defaults: {rtt: 10ms}
client: Oslo
database: redis
workload: {name: a, records: 300, threads: 4}
stop: {time: 60s}
warmup: 1s
retries: 0
`

func (b *bench) summary(dir string) record.Summary {
	b.t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var s record.Summary
	if err := json.Unmarshal(raw, &s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// plan returns the trials of a run in the order of execution.
func (b *bench) plan(dir string) []record.Planned {
	b.t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var r record.Run
	if err := json.Unmarshal(raw, &r); err != nil {
		b.t.Fatal(err)
	}
	return r.Plan
}

func TestRunMeasuresEveryCell(t *testing.T) {
	testkit.Need(t, testkit.FrontEnd)
	b := newBench(t)
	r := b.run(0, "run", b.write("small.yaml", small))
	contains(t, r.stdout.String(), "workload", "report.html")

	s := b.summary(b.path("runs/latest"))
	if !s.Complete || len(s.Trials) != 4 {
		t.Fatalf("complete %v, %d trials, want 4", s.Complete, len(s.Trials))
	}
	for _, x := range s.Trials {
		if x.State != record.TrialOK || x.Outcomes.OK == 0 || x.Goodput <= 0 || x.Outcomes.Failed+x.Outcomes.Unknown > 0 {
			t.Errorf("trial %d: state %s (%s), outcomes %+v, goodput %.1f", x.ID, x.State, x.Error, x.Outcomes, x.Goodput)
		}
		if x.Traffic.TotalBytes == 0 || x.Traffic.DataBytes > x.Traffic.TotalBytes {
			t.Errorf("trial %d: traffic %+v", x.ID, x.Traffic)
		}
		if n := len(x.Fidelity.Links); n != 6 { // three nodes and the client, all linked
			t.Errorf("trial %d: %d links in evidence, want 6", x.ID, n)
		}
		for _, l := range x.Fidelity.Links {
			// Correctness, not accuracy: half the distance would be off by more.
			if !l.Answered || math.Abs(l.RTTErrorMS) > 0.4*l.SetRTTMS+1 {
				t.Errorf("trial %d: link %s: set %.2f ms, measured %.2f", x.ID, l.ID, l.SetRTTMS, l.RTTMS)
			}
		}
	}
	for _, file := range []string{"run.json", "report.html", "trials/1/timeline.parquet", "trials/1/nodes.parquet", "trials/1/ycsb.txt"} {
		if !exists(b.path("runs/latest/" + file)) {
			t.Errorf("%s is missing", file)
		}
	}
	contains(t, b.run(0, "show", "runs/latest").stdout.String(), "workload", "scale")
	for _, l := range leftoversOf(r.cmd.Process.Pid) {
		t.Errorf("left behind: %s", l)
	}
}

// The files in experiments/ are examples for new users.
func TestReadyExperiments(t *testing.T) {
	for name, sets := range map[string][]string{
		"quickstart.yaml": nil, "examples/drift.yaml": nil, "hydra/wallet.yaml": {"--set", "database.options.backend=sqlite"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			file, err := filepath.Abs("../../experiments/" + name)
			if err != nil {
				t.Fatal(err)
			}
			r := b.run(0, append([]string{"run", file, "--fast", "--retries", "0"}, sets...)...)
			s := b.summary(b.path("runs/latest"))
			for _, x := range s.Trials {
				if x.State != record.TrialOK || x.Outcomes.OK == 0 {
					t.Errorf("trial %d: %s %s, %+v\n%s", x.ID, x.State, x.Error, x.Outcomes, r.stderr.String())
				}
			}
			if !s.Complete {
				t.Error("the run is not complete")
			}
		})
	}
}

func TestEarlyStoppingAndOpenLoop(t *testing.T) {
	b := newBench(t)
	r := b.run(0, "run", b.write("one.yaml", one),
		"--set", "stop.time=10m", "--set", "stop.confidence=20%", "--set", "stop.min_time=4s",
		"--set", "workload.arrival=poisson", "--set", "workload.target=50")
	s := b.summary(b.path("runs/latest"))
	if x := s.Trials[0]; x.Stopped != "confidence" {
		t.Errorf("stopped by %q after %.0f s, want confidence\n%s", x.Stopped, x.DurationS, r.stderr.String())
	}
}

func TestInterruptedRunKeepsResultsAndResumes(t *testing.T) {
	for _, stage := range []struct{ name, sign string }{
		{"lab", "agent link"}, {"cluster", "redis-server"}, {"driver", "agent load"},
	} {
		t.Run(stage.name, func(t *testing.T) {
			b := newBench(t)
			r := b.command("run", b.write("one.yaml", one)).start()
			b.await(stage.sign, func() bool { return len(b.find(stage.sign)) > 0 })
			r.signal(syscall.SIGINT)
			if code := r.wait(); code != 130 {
				t.Errorf("exit %d, want 130\n%s", code, r.stderr.String())
			}
			contains(t, r.stderr.String(), "interrupted", "--resume")
			if left := b.leftovers(); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			if s := b.summary(b.path("runs/latest")); s.Complete {
				t.Error("the interrupted run is reported as complete")
			}
		})
	}
}

func TestResumeRunsRemainingTrials(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("small.yaml", small)).start()
	b.await("the first trial to end", func() bool { return exists(b.path("runs/latest/trials/1")) || len(b.done()) > 0 })
	r.signal(syscall.SIGINT)
	r.wait()
	before := b.done()
	if len(before) == 0 || len(before) == 4 {
		t.Fatalf("finished before the interruption: %v", before)
	}
	b.run(0, "run", "--resume", "runs/latest")
	after := b.summary(b.path("runs/latest"))
	if !after.Complete || len(after.Trials) != 4 {
		t.Fatalf("after resuming: complete %v, %d trials", after.Complete, len(after.Trials))
	}
	for _, x := range after.Trials {
		if was, ok := before[x.ID]; ok && was.Goodput != x.Goodput {
			t.Errorf("the finished trial %d was repeated", x.ID)
		}
	}
}

// done returns the trials that ended ok, by ID.
func (b *bench) done() map[int]record.Trial {
	if !exists(b.path("runs/latest/summary.json")) {
		return nil
	}
	out := map[int]record.Trial{}
	for _, x := range b.summary(b.path("runs/latest")).Trials {
		if x.State == record.TrialOK {
			out[x.ID] = x
		}
	}
	return out
}

func TestConcurrentRuns(t *testing.T) {
	b := newBench(t)
	file := b.write("one.yaml", one)
	first := b.command("run", file, "--out", "first", "--set", "stop.time=3s").start()
	second := b.command("run", file, "--out", "second", "--set", "stop.time=3s").start()
	if a, c := first.wait(), second.wait(); a != 0 || c != 0 {
		t.Fatalf("exits %d and %d\n%s\n%s", a, c, first.stderr.String(), second.stderr.String())
	}
	for _, dir := range []string{"first", "second"} {
		if s := b.summary(b.path(dir + "/latest")); !s.Complete || s.Trials[0].Outcomes.OK == 0 {
			t.Errorf("%s: %+v", dir, s.Trials)
		}
	}
}
