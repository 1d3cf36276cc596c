package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
)

var run = &record.Dir{
	Run: record.Run{Versions: record.Versions{Skerry: "v1"}, Host: record.Machine{CPU: "Z", Cores: 2, MemoryBytes: 24 << 30, Kernel: "6.18"}},
	Summary: record.Summary{Run: "20261123-x", Trials: []record.Trial{
		{
			ID: 2, Repetition: 1, State: record.TrialOK, Goodput: 1234.5678, Bound: &record.Bound{By: "machine"},
			Parameters: map[string]any{"workload": map[string]any{"name": "e"}, "scale": 0.2},
			Operations: map[string]record.OperationSummary{"READ": {Count: 1, Service: record.Latency{P99: 2000},
				Response: record.Latency{P99: 3000}}},
			Verdict:  record.Verdict{State: record.Suspect, Kinds: []string{"steal", "late", "steal"}},
			Replaced: []record.Replaced{{}},
		},
		{ID: 1, Repetition: 1, State: record.TrialOK, Goodput: 1, Parameters: map[string]any{"scale": 1.0},
			Verdict: record.Verdict{State: record.Valid}},
	}},
}

func of(t *testing.T, d *record.Dir, keep ...string) []Row {
	t.Helper()
	rows, err := TrialRows(d, keep)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestTrialRows(t *testing.T) {
	rows := of(t, run, "goodput", "read.p*")
	want := []Row{
		{
			Run: "20261123-x", Version: "v1", Machine: "Z, 2 cores, 24 GiB, Linux 6.18", Trial: 1, Repetition: 1, State: "ok",
			Verdict: "valid", Attempts: 1,
			Parameters: map[string]string{"scale": "1"}, Figures: map[string]float64{"goodput": 1},
		},
		{
			Run: "20261123-x", Version: "v1", Machine: "Z, 2 cores, 24 GiB, Linux 6.18", Trial: 2, Repetition: 1, State: "ok",
			Verdict: "suspect", Reasons: "late steal", Bound: "machine", Attempts: 2,
			Parameters: map[string]string{"workload": "e", "scale": "0.2"},
			Figures:    map[string]float64{"goodput": 1234.5678, "read.p50": 0, "read.p95": 0, "read.p99": 0.003, "read.p999": 0},
		},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if rows[1].Valid() || !rows[0].Valid() {
		t.Error("the suspect trial is valid, or the valid trial is not")
	}
}

// Lost writes are a result of a trial; lateness makes the whole trial doubtful.
func TestRowCounts(t *testing.T) {
	for reasons, want := range map[string]bool{"audit": true, "audit driver-late": false, "driver-late": false} {
		r := Row{State: record.TrialOK, Verdict: record.Suspect, Reasons: reasons}
		if r.Counts() != want {
			t.Errorf("suspect for %s: counts %v", reasons, !want)
		}
		if r.Valid() {
			t.Errorf("suspect for %s: valid", reasons)
		}
		if audited := strings.HasPrefix(reasons, "audit"); r.HasFaults() != audited {
			t.Errorf("suspect for %s: has faults: %v", reasons, !audited)
		}
	}
	if (Row{State: record.TrialFailed, Verdict: record.Suspect, Reasons: "audit"}).Counts() {
		t.Error("a failed trial counts")
	}
}

// Written rows are read back to six digits.
func TestWriteAndRead(t *testing.T) {
	rows := of(t, run, "goodput")
	rows[0].Started = time.Date(2026, 11, 23, 15, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	if err := writeRows(&b, rows); err != nil {
		t.Fatal(err)
	}
	got, err := readRows(&b)
	if err != nil {
		t.Fatal(err)
	}
	rows[0].Parameters["workload"] = ""
	rows[1].Figures["goodput"] = 1234.57
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Error(diff)
	}
}

func TestFormatParameter(t *testing.T) {
	for want, v := range map[string]any{
		"e":           map[string]any{"name": "e", "timeout": "30s"},
		"none":        []any{},
		"shrink+grow": []any{map[string]any{"name": "shrink", "at": "2m"}, map[string]any{"name": "grow"}},
		"cassandra/read_consistency:one/write_consistency:all": map[string]any{"name": "cassandra",
			"options": map[string]any{"write_consistency": "all", "read_consistency": "one"}},
		"service-ip/members:shared": map[string]any{"kind": "service-ip", "members": "shared"},
		"0.2":                       0.2,
	} {
		if got := formatParameter(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

// In addition to the metrics of assertions, those of the load phase, short jobs and pairs of data nodes are stored.
func TestRowLoadProbesPairs(t *testing.T) {
	d := &record.Dir{Summary: record.Summary{Trials: []record.Trial{
		{ID: 1, State: record.TrialInterrupted},
		{
			ID: 2, State: record.TrialOK, Outcomes: record.Outcomes{OK: 10},
			Load:   &record.Load{Rate: 500, Insert: record.OperationSummary{Service: record.Latency{P95: 1500, Max: 2000}}},
			Events: []record.EventImpact{{Name: "hog", AtS: 5}},
			Probes: []record.Probe{
				{StartS: 1, Operations: map[string]record.OperationSummary{"READ-MODIFY-WRITE": {Count: 9,
					Service: record.Latency{P95: 2000, Max: 1}}}},
				{StartS: 6, Operations: map[string]record.OperationSummary{"READ-MODIFY-WRITE": {Count: 9,
					Service: record.Latency{P95: 3000, Max: 1}}}}, {},
			},
			Traffic: &record.Traffic{Pairs: []record.PairTraffic{{From: "Rome", To: "Oslo", Bytes: 40}, {From: "Oslo", To: "Rome", Bytes: 60},
				{From: "client", To: "Oslo", Bytes: 7}}},
		},
	}}}
	rows := of(t, d, "load.p95", "probes.*", "pair.*")
	want := map[string]float64{"load.p95": 0.0015, "pair.Oslo~Rome": 10,
		"probes.read_modify_write.highest": 0.003, "probes.read_modify_write.before": 0.002, "probes.read_modify_write.during": 0.003,
		"probes.read_modify_write.growth": 1.5}
	if len(rows) != 1 {
		t.Fatalf("%d rows, the interrupted trial among them", len(rows))
	}
	if diff := cmp.Diff(want, rows[0].Figures); diff != "" {
		t.Error(diff)
	}
}

// For repeated events the mean, the maximum and the number are stored.
func TestRowEvents(t *testing.T) {
	cut := func(unresponsive float64, periods int) record.EventImpact {
		return record.EventImpact{Name: "cut", Kind: "link_down",
			Recovery: record.Recovery{UnresponsiveS: unresponsive, UnresponsivePeriods: periods}}
	}
	d := &record.Dir{Summary: record.Summary{Trials: []record.Trial{{ID: 1, State: record.TrialOK,
		Events: []record.EventImpact{cut(0, 0), cut(9, 2), cut(3, 1)}}}}}
	rows := of(t, d, "events.cut.unresponsive*", "events.cut.times", "events.cut.stalled")
	want := map[string]float64{
		"events.cut.unresponsive": 4, "events.cut.unresponsive.most": 9, "events.cut.unresponsive_periods": 1,
		"events.cut.unresponsive_periods.most": 2,
		"events.cut.times":                     3, "events.cut.stalled": 2,
	}
	if diff := cmp.Diff(want, rows[0].Figures); diff != "" {
		t.Error(diff)
	}
}

// Membership changes are stored for each node.
func TestRowMembershipChanges(t *testing.T) {
	at := func(second int64) *record.Moment { return &record.Moment{NS: second * 1e9} }
	line, err := json.Marshal(record.Event{
		Kind: "leave", Targets: []string{"Pune"}, Effect: &record.Effect{On: record.OnNodes, Makes: record.Down, Member: record.Leaves},
		Apply: &record.Step{Began: at(1), Accepted: at(2), Completed: at(4)}, Revert: &record.Step{Began: at(5), Completed: at(9)},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &record.Dir{Path: t.TempDir(), Summary: record.Summary{Trials: []record.Trial{{ID: 1, State: record.TrialOK}}}}
	dir := filepath.Join(d.Path, "trials", "1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), append(line, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"change.Pune.leave.accepted": 1, "change.Pune.leave.complete": 3, "change.Pune.join.complete": 4}
	if diff := cmp.Diff(want, of(t, d, "change.*")[0].Figures); diff != "" {
		t.Error(diff)
	}
}

// Metrics over time are read back with the parameters of their rows.
func TestWriteAndReadPoints(t *testing.T) {
	rows := []Row{{Trial: 3, Parameters: map[string]string{"scale": "1"}}}
	points := []Point{{Trial: 3, T: 10, Parameters: rows[0].Parameters, Figures: map[string]float64{"goodput": 12.5}},
		{Trial: 3, T: 20, Parameters: rows[0].Parameters, Figures: map[string]float64{"rtt": 0.05}}}
	var b bytes.Buffer
	if err := writePoints(&b, points); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	got, err := readPoints(&b, rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(points, got); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []string{"", "a,b\n", strings.Replace(text, "3,10", "4,10", 1), strings.Replace(text, "12.5", "much", 1)} {
		if got, err := readPoints(strings.NewReader(wrong), rows); err == nil {
			t.Errorf("%q was parsed as %v", wrong, got)
		}
	}
}

func TestReadRowsRejects(t *testing.T) {
	head := strings.Join(fixedColumns, ",")
	for name, text := range map[string]string{
		"nothing":        "",
		"other columns":  "a,b\n1,2\n",
		"a short line":   head + "\n1,2\n",
		"no number":      head + ",goodput\nr,v,m,2026-11-23T15:00:00Z,1,1,ok,valid,,,1,much\n",
		"no time":        head + "\nr,v,m,today,1,1,ok,valid,,,1\n",
		"a trial's name": head + "\nr,v,m,2026-11-23T15:00:00Z,one,1,ok,valid,,,1\n",
	} {
		if rows, err := readRows(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read as %v", name, rows)
		}
	}
}

// Cuts of links in use are distinguished, with the effect of each.
func TestRowLinksInUse(t *testing.T) {
	cut := func(share, unresponsive float64) record.EventImpact {
		h := record.EventImpact{Name: "cut", Kind: "link_down", Carried: &record.Carried{Rate: share * 1e6, Share: share}}
		h.Recovery.UnresponsiveS, h.Recovery.LongestUnresponsiveS = unresponsive, unresponsive
		h.Recovery.UnresponsivePeriods = int(min(1, unresponsive))
		return h
	}
	d := &record.Dir{}
	d.Summary.Trials = []record.Trial{{ID: 1, State: record.TrialOK, Events: []record.EventImpact{cut(0.2, 30), cut(0.001, 2), cut(0.1, 0)}}}
	got := of(t, d, "events.cut.used*", "turn.cut")[0].Figures
	want := map[string]float64{"events.cut.used": 2, "events.cut.used_stalled": 1, "events.cut.used_unresponsive": 15}
	for i, c := range d.Summary.Trials[0].Events {
		of := fmt.Sprintf("cut.%02d.", i+1)
		want[of+"at"], want[of+"carried"], want[of+"share"] = 0, c.Carried.Rate, c.Carried.Share
		want[of+"unresponsive"], want[of+"longest_unresponsive"] = c.Recovery.UnresponsiveS, c.Recovery.UnresponsiveS
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
