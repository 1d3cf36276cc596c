package data

import (
	"bytes"
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
			Operations: map[string]record.OperationSummary{"READ": {Count: 1, Service: record.Latency{P99: 2000}, Response: record.Latency{P99: 3000}}},
			Verdict:    record.Verdict{State: record.Suspect, Kinds: []string{"steal", "late", "steal"}},
			Replaced:   []record.Replaced{{}},
		},
		{ID: 1, Repetition: 1, State: record.TrialOK, Goodput: 1, Parameters: map[string]any{"scale": 1.0}, Verdict: record.Verdict{State: record.Valid}},
	}},
}

func TestOf(t *testing.T) {
	rows := Of(run, []string{"goodput", "read.p*"})
	want := []Row{
		{
			Run: "20261123-x", Version: "v1", Machine: "Z, 2 cores, 24 GiB, Linux 6.18", Trial: 1, Repetition: 1, State: "ok", Verdict: "valid", Attempts: 1,
			Parameters: map[string]string{"scale": "1"}, Figures: map[string]float64{"goodput": 1},
		},
		{
			Run: "20261123-x", Version: "v1", Machine: "Z, 2 cores, 24 GiB, Linux 6.18", Trial: 2, Repetition: 1, State: "ok", Verdict: "suspect", Reasons: "late steal", Bound: "machine", Attempts: 2,
			Parameters: map[string]string{"workload": "e", "scale": "0.2"},
			Figures:    map[string]float64{"goodput": 1234.5678, "read.p50": 0, "read.p95": 0, "read.p99": 0.003, "read.p999": 0},
		},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if rows[1].Valid() || !rows[0].Valid() {
		t.Error("the suspect trial counts, or the valid one does not")
	}
}

// What is written is read again, to six digits.
func TestWriteAndRead(t *testing.T) {
	rows := Of(run, []string{"goodput"})
	rows[0].Started = time.Date(2026, 11, 23, 15, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	if err := Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	rows[0].Parameters["workload"] = ""
	rows[1].Figures["goodput"] = 1234.57
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadRefuses(t *testing.T) {
	head := strings.Join(fixed, ",")
	for name, text := range map[string]string{
		"nothing":        "",
		"other columns":  "a,b\n1,2\n",
		"a short line":   head + "\n1,2\n",
		"no number":      head + ",goodput\nr,v,m,2026-11-23T15:00:00Z,1,1,ok,valid,,,1,much\n",
		"no time":        head + "\nr,v,m,today,1,1,ok,valid,,,1\n",
		"a trial's name": head + "\nr,v,m,2026-11-23T15:00:00Z,one,1,ok,valid,,,1\n",
	} {
		if rows, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read as %v", name, rows)
		}
	}
}
