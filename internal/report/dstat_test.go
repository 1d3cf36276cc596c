package report

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
	"skerry/internal/topology"
)

func TestExportDstat(t *testing.T) {
	start := time.Date(2026, 11, 21, 18, 30, 0, 0, time.UTC)
	w, err := record.Create(t.TempDir(), record.Run{Name: "x", Host: record.Machine{Cores: 4, MemoryBytes: 8 << 30},
		Plan: []record.Planned{{ID: 1, Cell: 1, Repetition: 1}}})
	must(t, err)
	tw, err := w.OpenTrial(1)
	must(t, err)
	must(t, tw.Topology(topology.Topology{Nodes: []topology.Node{{Name: "n1", CPU: 2, Memory: 1000}}}))
	must(t, tw.NodeSeconds(
		record.NodeSecond{T: 0, Node: "n1", CPU: 1, User: 0.5, System: 0.25, Steal: 0.5, Memory: 600, ReadBytes: 1, WroteBytes: 2,
			RxBytes: 3, TxBytes: 4},
		record.NodeSecond{T: 0, Node: "@host", User: 1},
		record.NodeSecond{T: 1, Node: "n1"}))
	must(t, tw.Finish(record.Trial{State: record.TrialOK, Started: start, SetupS: 5, WarmupS: 1}))
	must(t, w.Finish())
	d, err := record.Open(w.Dir())
	must(t, err)
	out := t.TempDir()
	if n, err := ExportDstat(d, out); err != nil || n != 2 {
		t.Fatalf("%d files, %v", n, err)
	}
	b, err := os.ReadFile(filepath.Join(out, "1-n1.csv"))
	must(t, err)
	r := csv.NewReader(strings.NewReader(string(b)))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	must(t, err)
	if !strings.HasPrefix(rows[0][0], "Dstat 0.7") || rows[2][1] != "n1" || len(rows) != 8 {
		t.Fatalf("%q", rows)
	}
	names, first := rows[5], rows[6]
	got := map[string]string{}
	for i, n := range names {
		got[n] = first[i]
	}
	want := map[string]string{"epoch": "1795285806.000", "usr": "25.000", "sys": "12.500", "idl": "37.500", "wai": "0.0", "stl": "25.000",
		"used": "600", "free": "400", "buff": "0", "cach": "0", "read": "1", "writ": "2", "recv": "3", "send": "4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(out, "1-host.csv")); err != nil {
		t.Error(err)
	}
}
