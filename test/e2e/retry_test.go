package e2e

import (
	"slices"
	"testing"

	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
)

// never is a trial whose driver is late on any machine, without a permanent reason for suspicion.
const never = `
name: never
engine: userspace
topology: "ring:3,rtt=4ms"
database: redis
workload: {name: a, records: 100, threads: 2}
warmup: 0s
stop: {time: 1s}
fidelity: {client_late: 1ns, host_cpu: 100%, client_cpu: 100%}
`

// A trial that is suspect for a transient reason is repeated once. The replaced trial is stored and listed.
func TestSuspectTrialsAreRunAgain(t *testing.T) {
	b := newBench(t)
	file := b.write("never.yaml", never)
	r := b.run(0, "run", file)
	contains(t, r.stderr.String(), "retry of trial 1", "suspect: the driver was more than")
	contains(t, r.stdout.String(), "trial 1 was repeated: the attempt in replaced/1-1 was suspect: the driver was more than")
	x := b.summary(b.path("runs/latest")).Trials[0]
	if len(x.Replaced) != 1 || x.Replaced[0].Verdict.State != record.Suspect || !x.Replaced[0].Started.Before(x.Started) {
		t.Errorf("replaced %+v", x.Replaced)
	}
	if !slices.Contains(x.Verdict.Kinds, string(verdict.DriverLate)) {
		t.Errorf("verdict %+v", x.Verdict)
	}
	if !exists(b.path("runs/latest/replaced/1-1/timeline.parquet")) {
		t.Error("the first attempt was not stored")
	}
	contains(t, r.stdout.String(), "No trial is valid because of this machine: CPU time was delayed")

	// In CI, a suspect trial is no result.
	strict := b.run(3, "run", "--strict", "--retries", "0", file)
	contains(t, strict.stderr.String(), "trials are suspect: 1")
	if x := b.summary(b.path("runs/latest")).Trials[0]; len(x.Replaced) != 0 {
		t.Errorf("with --retries 0: replaced %+v", x.Replaced)
	}
}
