package trial

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry/internal/evidence/sample"
	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
	"skerry/internal/record"
)

// wide are limits that no busy machine exceeds: these tests check that evidence exists.
var wide = verdict.Limits{
	RTTErrorMS: 0.5, BandwidthError: 0.05, EventLateUS: 1e12, EmulatorLateUS: 1e12, ClientLateUS: 1e12,
	ClientCPUShare: 1e6, HostCPUShare: 1e6, StealShare: 1e6, OthersShare: 1e6, Moved: 1e6,
}

// foundIn has the findings of a successful trial: a real drive of a second against a database that answers immediately,
// and generated findings of the lab.
func newFindings(t *testing.T) findings {
	t.Helper()
	p, _ := ycsb.Builtin("a")
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": "1000"}))
	if err != nil {
		t.Fatal(err)
	}
	db := new(load.NullDatabase)
	d, err := load.Run(t.Context(), load.Spec{
		Phase: load.PhaseRun, Workload: w, Arrival: load.Closed, Threads: 1, Duration: 1100 * time.Millisecond, Timeout: time.Minute, Seed: 1,
	}, func(ctx context.Context) (load.Client, error) {
		return db.Open(ctx, map[string]string{load.NullDelay: "1ms"})
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := sample.ReadMachineUsage(t.Context(), files.Local{})
	if err != nil {
		t.Fatal(err)
	}
	return findings{
		links: []record.LinkFidelity{{ID: "a~b", Answered: true}}, moved: true, flavors: verdict.Present(2),
		measurement: measurement{started: true, drive: d, sampled: 1, otherUse: verdict.Present(verdict.Use{Of: 2}),
			machines: []machineSpan{{use: verdict.Use{Of: float64(machine.Cores)}, late: link.Lateness{Known: true}}}},
		audit: &record.Audit{},
	}
}

// removeLateness removes the emulator's lateness.
func removeLateness(f *findings) {
	f.machines = slices.Clone(f.machines)
	f.machines[0].late = link.Lateness{}
}

// Evidence that does not apply to the trial is not missing.
func TestMissingEvidenceMakesTrialSuspect(t *testing.T) {
	whole := newFindings(t)
	for name, tt := range map[string]struct {
		take func(*findings)
		want []string // substring of each reason
	}{
		"nothing":           {func(*findings) {}, nil},
		"kernel's engine":   {func(f *findings) { f.moved = false; removeLateness(f) }, nil},
		"emulator's figure": {removeLateness, []string{"the lateness of the emulator: not reported by the emulator"}},
		"driver's lateness": {
			func(f *findings) { f.drive.Late = load.Histogram{} },
			[]string{"the lateness of the driver: not reported by the driver"},
		},
		"driver's CPU": {func(f *findings) { f.drive.CPU = 0 }, []string{"the CPU use of the driver: not reported by the driver"}},
		"begin": {
			func(f *findings) { f.started = false },
			[]string{
				"the account of packets on links", "the lateness of the emulator", "CPU use of the machine", "stolen by the hypervisor",
				"the events", "the CPU use of other programs",
			},
		},
		"samples": {func(f *findings) { f.drive.Duration, f.sampled = 10*time.Second, 3 }, []string{"sampled in 3 of 10 seconds"}},
		"audit":   {func(f *findings) { f.audit = nil }, []string{"acknowledged writes: not read back"}},
		"a replica": {func(f *findings) {
			f.audit = &record.Audit{Replicas: []record.ReplicaAudit{{Node: "b", Error: "refused"}}}
		}, []string{"the copy on b could not be read: refused"}},
		"flavors": {
			func(f *findings) { f.flavors = verdict.Missing[int]("no control groups") },
			[]string{"the limits of flavors: no control groups"},
		},
		"flavors not checked":   {func(f *findings) { f.flavors = verdict.Piece[int]{} }, []string{"limits of flavors: not collected"}},
		"a link without answer": {func(f *findings) { f.links = []record.LinkFidelity{{ID: "a~b"}} }, []string{"1 of 1 links answered no probe"}},
		"a skipped event": {
			func(f *findings) { f.events = []record.Event{{ID: 1, State: record.EventSkipped, Error: "too late"}} },
			[]string{"was skipped: too late"},
		},
		"operations": {func(f *findings) { f.drive.Stuck = 1 }, []string{"1 operations exceeded their timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := whole
			tt.take(&f)
			v := verdict.Judge(f.evidence(experiment.Experiment{Audit: experiment.Audit{Enabled: true}}), wide)
			if len(v.Reasons) != len(tt.want) || (v.State == record.Valid) != (len(tt.want) == 0) {
				t.Fatalf("verdict %+v, want %q", v, tt.want)
			}
			for _, want := range tt.want {
				if !slices.ContainsFunc(v.Reasons, func(r string) bool { return strings.Contains(r, want) }) {
					t.Errorf("no reason of %q has %q", v.Reasons, want)
				}
			}
		})
	}
}
