package redis

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// BenchmarkReadBack reads 1,000,000 acknowledged updates of 1,000,000 records back from one Redis. Use -benchtime 1x.
func BenchmarkReadBack(b *testing.B) {
	const writes = "1000000"
	d := New()
	w, _, err := ycsb.Parse(ycsb.Properties{"recordcount": writes, "operationcount": writes, "fieldlength": "16",
		"requestdistribution": "uniform", "readproportion": "0", "updateproportion": "1"})
	if err != nil {
		b.Fatal(err)
	}
	properties := startPlain(b, d)
	open := func(ctx context.Context) (load.Client, error) { return d.Open(ctx, properties) }
	for b.Loop() {
		spec := load.Spec{Workload: w, Threads: 64, Seed: 1,
			Audit: &load.AuditSpec{File: filepath.Join(b.TempDir(), "ledger"), HistoryKeys: 8, Settle: time.Second}}
		for _, spec.Phase = range []load.Phase{load.PhaseLoad, load.PhaseRun, load.PhaseAudit} {
			// The kernel forgets the peak memory of the process; see proc(5).
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
				b.Fatal(err)
			}
			r, err := load.Run(b.Context(), spec, open, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(peakMemory(b)/1e6, "peak-MB-"+string(spec.Phase))
			if a := r.Audit; a != nil {
				b.ReportMetric(a.Took.Seconds(), "read-back-s")
				if wrong := a.Lost + a.Stale + a.Unexpected + a.Unread; wrong > 0 {
					b.Errorf("%d wrong values", wrong)
				}
			}
		}
	}
}

func peakMemory(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kB, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kB * 1024
		}
	}
	b.Fatal("no peak memory in /proc/self/status")
	return 0
}
