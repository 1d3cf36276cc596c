package ycsbcli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"skerry/internal/load"
)

// A client warns if another client on this machine runs the same operations or loads the same
// records.
func TestConcurrentClients(t *testing.T) {
	seeded := func(phase load.Phase, seed uint64, set ...string) Options {
		set = append([]string{"recordcount=100", "operationcount=50", "table=" + t.Name()}, set...)
		return Options{Phase: phase, Database: load.NullName, Files: []string{"workloada"}, Set: set, Seed: seed}
	}
	for _, tt := range []struct {
		name       string
		first, own Options
		warning    string
	}{
		{"the same operations", seeded(load.PhaseRun, 1), seeded(load.PhaseRun, 1), "with seed 1: give each client its own --seed"},
		{"fewer of the same operations", seeded(load.PhaseRun, 1), seeded(load.PhaseRun, 1, "operationcount=20"),
			"with seed 1: give each client its own --seed"},
		{"another seed", seeded(load.PhaseRun, 1), seeded(load.PhaseRun, 2), ""},
		{"another cluster", seeded(load.PhaseRun, 1, "redis.host=a"), seeded(load.PhaseRun, 1, "redis.host=b"), ""},
		{"another workload", seeded(load.PhaseRun, 1), seeded(load.PhaseRun, 1, "updateproportion=0"), ""},
		{"the same records", seeded(load.PhaseLoad, 1), seeded(load.PhaseLoad, 2),
			"the same records, 0 to 99: give each client its own insertstart"},
		{"other records", seeded(load.PhaseLoad, 1, "insertcount=50"), seeded(load.PhaseLoad, 1, "insertstart=50"), ""},
		{"load and run", seeded(load.PhaseLoad, 1), seeded(load.PhaseRun, 1), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := tt.first.plan()
			if err != nil {
				t.Fatal(err)
			}
			release := warnConcurrent(io.Discard, tt.first, p)
			var stderr bytes.Buffer
			if err := Run(t.Context(), tt.own, databases(nil), io.Discard, &stderr); err != nil {
				t.Fatal(err)
			}
			got := stderr.String()
			if strings.Contains(got, "another client") != (tt.warning != "") || !strings.Contains(got, tt.warning) {
				t.Errorf("while the other client runs: %q, want %q", got, tt.warning)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			stderr.Reset()
			if err := Run(t.Context(), tt.own, databases(nil), io.Discard, &stderr); err != nil ||
				strings.Contains(stderr.String(), "another client") {
				t.Errorf("after the other client has ended: %q, %v", stderr.String(), err)
			}
		})
	}
}

// A client of a part of a table says which part, and where inserts begin.
func TestTableParts(t *testing.T) {
	for _, tt := range []struct {
		phase load.Phase
		file  string
		set   []string
		want  string
	}{
		{load.PhaseLoad, "workloada", []string{"insertstart=25", "insertcount=50"}, "loads records 25 to 74 of a table of 100"},
		{load.PhaseLoad, "workloada", nil, ""},
		{load.PhaseRun, "workloadc", []string{"insertstart=25"}, ""},
		{load.PhaseRun, "workloade", []string{"insertstart=25", "operationcount=50"}, "inserts begin at record 100"},
	} {
		var stderr bytes.Buffer
		o := Options{Phase: tt.phase, Database: load.NullName, Files: []string{tt.file}, Set: append([]string{"recordcount=100"}, tt.set...)}
		if err := Run(t.Context(), o, databases(nil), io.Discard, &stderr); err != nil {
			t.Fatal(err)
		}
		if got := stderr.String(); strings.Contains(got, "note:") != (tt.want != "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s %v: %q, want %q", tt.phase, tt.file, tt.set, got, tt.want)
		}
	}
}
