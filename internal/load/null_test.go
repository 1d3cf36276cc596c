package load

import (
	"context"
	"testing"

	"skerry/internal/load/ycsb"
)

func BenchmarkRun(b *testing.B) {
	for _, name := range []string{"a", "c", "f", "load"} {
		b.Run(name, func(b *testing.B) {
			p, _ := ycsb.Builtin(name)
			if p == nil {
				p, _ = ycsb.Builtin("a")
			}
			w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"writeallfields": "true", "recordcount": "1000"}))
			if err != nil {
				b.Fatal(err)
			}
			spec := Spec{Workload: w, Threads: 1, Operations: int64(b.N)}
			if name == "load" {
				spec.Phase = PhaseLoad
				spec.Workload.RecordCount, spec.Workload.InsertCount = int64(b.N), int64(b.N)
			}
			var db NullDatabase
			b.ReportAllocs()
			b.ResetTimer()
			_, err = Run(context.Background(), spec, func(ctx context.Context) (Client, error) { return db.Open(ctx, nil) }, nil)
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
