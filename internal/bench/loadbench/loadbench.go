// Package loadbench measures the cost of the load driver: operations per CPU-second against a null database.
package loadbench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"skerry/internal/evidence/stats"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// Options of the benchmark.
type Options struct {
	Quick    bool // fewer operations; the figures are not publishable
	Progress func(what string)
}

// Result of the benchmark.
type Result struct {
	Schema string `json:"schema"`
	Cores  int    `json:"cores"`
	Quick  bool   `json:"quick"`
	Null   []Null `json:"null"`
}

const schema = "skerry/bench-load/v1"

// Text writes the result as a table.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "null database\tthreads\tvalue bytes\tops per CPU-second\t")
	for _, n := range r.Null {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t\n", n.Workload, n.Threads, n.ValueBytes, n.PerCPUSecond)
	}
	return w.Flush()
}

// Null is the cost of the driver against a database that answers at once, in a closed loop. It includes recording both
// latencies and generating values.
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

// Run measures several workloads.
func Run(ctx context.Context, o Options) (Result, error) {
	out := Result{Schema: schema, Cores: runtime.NumCPU(), Quick: o.Quick}
	n := "3000000"
	if o.Quick {
		n = "20000"
	}
	size := ycsb.Properties{"recordcount": "100000", "operationcount": n}
	all := ycsb.Properties{"writeallfields": "true"}
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
			return out, err
		}
		r := Null{Workload: c.name, Threads: c.threads, ValueBytes: c.bytes}
		for i := range nullRuns {
			o.Progress(fmt.Sprintf("null database, workload %s, %d threads, run %d of %d", c.name, c.threads, i+1, nullRuns))
			db := new(load.NullDatabase)
			got, err := load.Run(ctx, load.Spec{Phase: c.phase, Workload: w, Threads: c.threads, Seed: uint64(i)},
				func(ctx context.Context) (load.Client, error) { return db.Open(ctx, nil) }, nil)
			if err != nil {
				return out, fmt.Errorf("driving the null database: %w", err)
			}
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			r.Operations += got.OK
			r.Runs = append(r.Runs, float64(got.OK)/got.CPU.Seconds())
		}
		r.PerCPUSecond = stats.Median(r.Runs)
		out.Null = append(out.Null, r)
	}
	return out, nil
}
