package loadbench

import (
	"context"
	"fmt"
	"strconv"

	"skerry/internal/evidence/stats"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// Null is the driver against a database that answers at once, in a closed loop, with
// both latencies recorded and the values of writes made.
type Null struct {
	Workload   string `json:"workload"`
	Threads    int    `json:"threads"`
	ValueBytes int    `json:"value_bytes"` // made for each write
	Operations int64  `json:"operations"`
	// PerCPUSecond is operations per second of the process's CPU time, the median
	// of Runs.
	PerCPUSecond float64   `json:"ops_per_cpu_s"`
	Runs         []float64 `json:"runs"`
}

const nullRuns = 5

func measureNull(ctx context.Context, o Options) ([]Null, error) {
	n := "3000000"
	if o.Quick {
		n = strconv.Itoa(quickRuns)
	}
	size := ycsb.Properties{"recordcount": "100000", "operationcount": n}
	all := ycsb.Properties{"writeallfields": "true"}
	var out []Null
	for _, c := range []struct {
		name    string
		p       ycsb.Properties
		phase   load.Phase
		threads int
		bytes   int
	}{
		{"load", size.Merge(ycsb.Properties{"recordcount": n}), load.PhaseLoad, 1, 1000},
		{"a", size.Merge(all), load.PhaseRun, 1, 1000},
		{"a", size.Merge(all), load.PhaseRun, 16, 1000},
		{"c", size, load.PhaseRun, 1, 0},
		{"d", size, load.PhaseRun, 1, 1000},
		{"f", size.Merge(all), load.PhaseRun, 1, 1000},
	} {
		workload := c.name
		if c.phase == load.PhaseLoad {
			workload = "a"
		}
		p, _ := ycsb.Builtin(workload)
		w, _, err := ycsb.Parse(p.Merge(c.p))
		if err != nil {
			return nil, err
		}
		r := Null{Workload: c.name, Threads: c.threads, ValueBytes: c.bytes}
		for i := range nullRuns {
			o.Progress(fmt.Sprintf("null database, workload %s, %d threads, run %d of %d", c.name, c.threads, i+1, nullRuns))
			db := new(load.NullDatabase)
			got, err := load.Run(ctx, load.Spec{Phase: c.phase, Workload: w, Threads: c.threads, Seed: uint64(i)},
				func(ctx context.Context) (load.Client, error) { return db.Open(ctx, nil) }, nil)
			if err != nil {
				return nil, fmt.Errorf("driving the null database: %w", err)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r.Operations += got.OK
			r.Runs = append(r.Runs, float64(got.OK)/got.CPU.Seconds())
		}
		r.PerCPUSecond = stats.Median(r.Runs)
		out = append(out, r)
	}
	return out, nil
}
