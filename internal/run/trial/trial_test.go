package trial

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry/internal/base/progress"
	"skerry/internal/database"
	"skerry/internal/database/redis"
	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// small is a trial of a few seconds with all kinds of evidence.
const small = `
name: small
engine: userspace
topology:
  sites: [Oslo, Bergen, Narvik]
  defaults: {rtt: 4ms, bandwidth: 100mbit}
client: Oslo
database: redis
workload: {name: a, records: 300, threads: 4}
warmup: 500ms
stop: {time: 3s}
events:
  - {name: slower, at: 1s, for: 500ms, latency: {ids: [Oslo~Bergen], add: 1ms}}
audit: true
fidelity: {host_cpu: 100%, client_late: 1s, emulator_late: 1s, event_late: 1s, steal: 100%}
`

// runSmall runs the small trial with overrides, in a lab whose nodes' directories are in dataDir.
func runSmall(t *testing.T, dataDir string, sets ...string) record.Trial {
	t.Helper()
	x, _ := runIn(t, small, dataDir, sets...)
	return x
}

// runIn runs the first trial of an experiment, and returns it with its run directory.
func runIn(t *testing.T, text, dataDir string, sets ...string) (record.Trial, *record.Dir) {
	t.Helper()
	testkit.Need(t, testkit.Root, testkit.TUN, testkit.Installed(redis.Recipe))
	e, err := experiment.Parse("small.yaml", []byte(text), sets, false)
	if err != nil {
		t.Fatal(err)
	}
	cell := e.Plan()[0]
	db := redis.New()
	found, err := database.Locate(db, "", "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := record.Create(
		t.TempDir(),
		record.Run{Name: "small", Plan: []record.Planned{{ID: cell.ID, Cell: 1, Repetition: 1, Parameters: cell.Parameters}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() // also after Fatal
	w, err := out.OpenTrial(cell.ID)
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	if err := os.Chmod(filepath.Dir(state), 0o755); err != nil {
		t.Fatal(err)
	}
	x, err := Run(t.Context(), Config{
		Cell: cell, Database: db, Installation: found, Name: "trial-test", Exe: os.Args[0],
		StateDir: state, DataDir: dataDir, Writer: w, Progress: progress.New(io.Discard, nil), Label: "small",
	})
	if err != nil {
		t.Fatal(err)
	}
	if x.State != record.TrialOK {
		t.Fatalf("%s: %s", x.State, x.Error)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	dir, err := record.Open(out.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return dir.Summary.Trials[0], dir
}

// A trial on a real lab and a real database has every piece of its evidence.
func TestTrialHasAllEvidence(t *testing.T) {
	x := runSmall(t, t.TempDir())
	if slices.Contains(x.Verdict.Kinds, string(verdict.NoEvidence)) || len(x.Verdict.Kinds) != len(x.Verdict.Reasons) {
		t.Errorf("verdict %+v", x.Verdict)
	}
	if len(x.Fidelity.Links) != 6 || x.Fidelity.EmulatorLateP99US < 0 || x.Fidelity.ClientCPU == 0 || x.Fidelity.HostCPU == 0 ||
		len(x.Events) != 1 {
		t.Errorf("fidelity %+v, events %+v", x.Fidelity, x.Events)
	}
	if f := x.Fidelity; (f.OthersCPU == nil) == (f.OthersUnknown == "") {
		t.Errorf("other programs: %v, unknown: %q", f.OthersCPU, f.OthersUnknown)
	}
	if b := x.LatencyBound; b == nil || b.P50.By == "" || b.P50.LatencyMS <= 0 || b.P99.LatencyMS < b.P50.LatencyMS || b.P99.RoundTripMS <= 0 {
		t.Errorf("latency breakdown: %+v", b)
	}
	if x.Audit == nil || x.Audit.Keys != 300 || len(x.Audit.Replicas) != 3 {
		t.Errorf("audit %+v", x.Audit)
	}
}

// A flavor that this machine cannot enforce, here the throughput of a disk while directories are in memory, makes a
// trial suspect.
func TestUnsupportedFlavorMakesTrialSuspect(t *testing.T) {
	memory, err := os.MkdirTemp("/dev/shm", "skerry-trial-")
	if err != nil {
		testkit.Lacks(t, testkit.SharedMemory, err)
	}
	t.Cleanup(func() { os.RemoveAll(memory) })
	if err := os.Chmod(memory, 0o755); err != nil {
		t.Fatal(err)
	}
	x := runSmall(t, filepath.Join(memory, "a", "b"), "topology.defaults.flavor={disk: {write: 50MB}}")
	i := slices.Index(x.Verdict.Kinds, string(verdict.NoEvidence))
	if x.Verdict.State != record.Suspect || i < 0 || !strings.Contains(
		x.Verdict.Reasons[i], "no evidence of the limits of flavors: disk throughput of",
	) {
		t.Errorf("verdict %+v", x.Verdict)
	}
}
