package dbtest

import (
	"strconv"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

const workers = 8

// testLoad loads a table, counts and reads it back, and runs YCSB's workloads A and, with scans, E.
func (s *suite) testLoad(t *testing.T, cluster database.Cluster) {
	s.clearTable(t, cluster)
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	names := []string{"a"}
	if s.can.Scan {
		names = append(names, "e")
	}
	for i, name := range names {
		w := s.workload(t, name)
		var more []string
		if s.can.Scan { // the index that some keep for scans is made while loading
			more = []string{scanProperty, "0.95"}
		}
		open := s.clientOpener(cluster, more...)
		spec := load.Spec{Phase: load.PhaseLoad, Workload: w, Threads: workers, Batch: 7, Seed: 1}
		if i == 0 {
			if _, err := load.Run(ctx, spec, open, nil); err != nil {
				t.Fatalf("loading: %v", err)
			}
			if n, err := cluster.Count(ctx); err != nil || n != s.Rows {
				t.Fatalf("count after a load of %d rows: %d, %v", s.Rows, n, err)
			}
			if v, err := load.Verify(ctx, spec, open); err != nil || v.Records != s.Rows {
				t.Fatalf("verifying the load: %+v, %v", v, err)
			}
		}
		spec.Phase, spec.Operations = load.PhaseRun, 4*s.Rows
		if name == "e" {
			spec.Operations = s.Rows
		}
		began := time.Now()
		result, err := load.Run(ctx, spec, open, nil)
		if err != nil {
			t.Fatalf("running workload %s: %v", name, err)
		}
		if result.OK != spec.Operations || len(result.Errors) > 0 {
			t.Errorf("workload %s: %d of %d operations ended well; errors %+v", name, result.OK, spec.Operations, result.Errors)
		}
		s.row.setFigure("workload_"+name+"_ops_s", float64(result.OK)/time.Since(began).Seconds())
	}
}

func (s *suite) workload(t *testing.T, name string) ycsb.Workload {
	t.Helper()
	p, ok := ycsb.Builtin(name)
	if !ok {
		t.Fatalf("no workload %s", name)
	}
	rows := strconv.FormatInt(s.Rows, 10)
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": rows, "operationcount": rows}))
	if err != nil {
		t.Fatal(err)
	}
	return w
}
