package e2e

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/evidence/verdict"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// latencyTrial runs one trial without repetition.
func (b *bench) latencyTrial(text string) record.Trial {
	b.t.Helper()
	b.run(0, "run", "--retries", "0", b.write("latency.yaml", text))
	trials := b.summary(b.path("runs/latest")).Trials
	if len(trials) != 1 || trials[0].LatencyBound == nil {
		b.t.Fatalf("no trial has a latency breakdown: %+v", trials)
	}
	return trials[0]
}

// Servers that write each operation to a slow disk wait for it, whatever the load of the machine, because they need no
// CPU meanwhile. The experiment slows the disk, so that it is part of the emulation.
func TestSlowDiskBoundsLatency(t *testing.T) {
	b := benchAlone(t)
	if err := cgroup.CheckDiskLimit(b.dir); err != nil {
		testkit.Lacks(t, testkit.DiskCgroups, err)
	}
	x := b.latencyTrial(`
name: disk
topology: "ring:3,rtt=1ms"
database: {name: redis, options: {appendonly: "yes", appendfsync: always}}
workload: {name: a, records: 100, threads: 16, properties: {readproportion: 0, updateproportion: 1}}
warmup: 1s
stop: {time: 8s}
events: [{at: 0s, for: 30s, disk_slow: {nodes: data, write_ops: 20}}]
`)
	for name, c := range map[string]record.LatencyCause{"p50": x.LatencyBound.P50, "p99": x.LatencyBound.P99} {
		if len(c.Unknown) > 0 {
			testkit.Lacks(t, testkit.Delays, errors.New(c.Unknown[0]))
		}
		if c.By != bottleneck.Disk || c.OfMachine {
			t.Errorf("%s is attributed to %s (machine: %v), want the emulated disk: %+v", name, c.By, c.OfMachine, c)
		}
	}
}

// Other programs use the machine during a trial: the trial is suspect for that reason, and its latency is attributed to
// the machine.
func TestOtherProgramsMakeTrialSuspect(t *testing.T) {
	b := benchAlone(t)
	for range 4 * runtime.NumCPU() {
		loop := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = loop.Process.Kill() // runs until killed
			_ = loop.Wait()
		}()
	}
	x := b.latencyTrial(`
name: beside
topology: "ring:3,rtt=0.5ms"
database: redis
workload: {name: a, records: 100, threads: 8}
warmup: 0s
stop: {time: 5s}
`)
	if f := x.Fidelity; f.OthersCPU == nil {
		if os.Geteuid() == 0 && f.OthersUnknown == "" {
			t.Error("neither the CPU use of other programs nor the reason for its absence is recorded")
		}
		testkit.Lacks(t, testkit.Cgroups, errors.New(f.OthersUnknown))
	}
	if !slices.Contains(x.Verdict.Kinds, string(verdict.OtherWork)) || *x.Fidelity.OthersCPU < 0.1*float64(x.Fidelity.HostCores) {
		t.Errorf("other programs used %g of %d cores, verdict %+v", *x.Fidelity.OthersCPU, x.Fidelity.HostCores, x.Verdict)
	}
	if c := x.LatencyBound.P99; !c.OfMachine {
		t.Errorf("the 99th percentile is attributed to %s: %+v", c.By, c)
	}
}
