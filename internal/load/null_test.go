package load

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"skerry/internal/load/ycsb"
)

// runNull drives the null database with one of YCSB's workloads, changed.
func runNull(b *testing.B, spec Spec, name string, change ycsb.Properties) Result {
	b.Helper()
	p, _ := ycsb.Builtin(name)
	w, _, err := ycsb.Parse(p.Merge(change))
	if err != nil {
		b.Fatal(err)
	}
	spec.Workload = w
	var db NullDatabase
	r, err := Run(b.Context(), spec, func(ctx context.Context) (Client, error) { return db.Open(ctx, nil) }, nil)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func BenchmarkRun(b *testing.B) {
	change := ycsb.Properties{"writeallfields": "true", "recordcount": "1000"}
	for _, name := range []string{"a", "c", "f"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			runNull(b, Spec{Threads: 1, Operations: int64(b.N)}, name, change)
		})
	}
	b.Run("load", func(b *testing.B) {
		b.ReportAllocs()
		runNull(b, Spec{Phase: PhaseLoad, Threads: 1}, "a", ycsb.Properties{"recordcount": strconv.Itoa(b.N)})
	})
}

// BenchmarkAudit compares the driver's operations per CPU-second with and without an audit, in alternating rounds. -benchtime
// 7x makes seven rounds; the metrics are their medians.
func BenchmarkAudit(b *testing.B) {
	all := ycsb.Properties{"writeallfields": "true"}
	for _, c := range []struct {
		name     string
		workload string
		threads  int
		change   ycsb.Properties
	}{
		{"a", "a", 1, nil}, {"a, 16 threads", "a", 16, nil}, {"b", "b", 1, nil}, {"c", "c", 1, nil}, {"d", "d", 1, nil}, {"f", "f", 1, nil},
		{"a, all fields", "a", 1, all},
	} {
		b.Run(c.name, func(b *testing.B) {
			size := ycsb.Properties{"recordcount": "100000", "operationcount": "2000000"}
			file := filepath.Join(b.TempDir(), "ledger")
			var rates [2][]float64
			for round := uint64(0); b.Loop(); round++ {
				for with := range rates {
					spec := Spec{Threads: c.threads, Seed: round}
					if with == 1 {
						spec.Audit = &AuditSpec{File: file, HistoryKeys: 8}
					}
					r := runNull(b, spec, c.workload, size.Merge(c.change))
					rates[with] = append(rates[with], float64(r.OK)/r.CPU.Seconds())
				}
			}
			for with, unit := range []string{"ops/cpu-s-without", "ops/cpu-s-with"} {
				slices.Sort(rates[with])
				b.ReportMetric(rates[with][len(rates[with])/2], unit)
			}
		})
	}
}
