// Package loadbench measures the cost of the load driver: operations per CPU-second against a null database, and against
// one Redis compared with YCSB.
package loadbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"

	"skerry/internal/evidence/stats"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// ErrPart is returned for an unknown part of the benchmark.
var ErrPart = errors.New("no such part of the benchmark")

const (
	PartNull  = "null"
	PartRedis = "redis"
	PartAudit = "audit"
)

// Options of the benchmark. Zero values measure the null database only.
type Options struct {
	Only     []string // parts; default all that can be measured
	Quick    bool     // fewer operations; the figures are not publishable
	Progress func(what string)

	// Exe is the skerry program and Server the redis-server of part redis.
	Exe    string
	Server string
	Env    []string // that Server needs
	// YCSB is the folder of a built bench/ycsb-java (its target), "" to leave YCSB out.
	YCSB string
	// Open opens a client of Redis for part audit.
	Open func(ctx context.Context, properties map[string]string) (load.Client, error)
}

// Result of the benchmark.
type Result struct {
	Schema string       `json:"schema"`
	Cores  int          `json:"cores"`
	Quick  bool         `json:"quick"`
	Null   []Null       `json:"null,omitempty"`
	Redis  []Comparison `json:"redis,omitempty"`
	Audit  *AuditCost   `json:"audit,omitempty"`
}

const schema = "skerry/bench-load/v1"

// Run runs the parts of the benchmark.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, p := range o.Only {
		if p != PartNull && p != PartRedis && p != PartAudit {
			return Result{}, fmt.Errorf("%w: %q (want %s, %s or %s)", ErrPart, p, PartNull, PartRedis, PartAudit)
		}
	}
	wanted := func(p string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, p) }
	r := Result{Schema: schema, Cores: runtime.NumCPU(), Quick: o.Quick}
	var err error
	if wanted(PartNull) {
		if r.Null, err = measureNull(ctx, o); err != nil {
			return r, err
		}
	}
	if wanted(PartRedis) && (o.Server != "" || len(o.Only) > 0) {
		if r.Redis, err = measureRedis(ctx, o); err != nil {
			return r, err
		}
	}
	if wanted(PartAudit) {
		a, err := measureAudit(ctx, o)
		if err != nil {
			return r, err
		}
		r.Audit = &a
	}
	return r, nil
}

// Text writes the result as tables.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(r.Null) > 0 {
		fmt.Fprintln(w, "null database\tthreads\tvalue bytes\tops per CPU-second\t")
		for _, n := range r.Null {
			fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t\n", n.Workload, n.Threads, n.ValueBytes, n.PerCPUSecond)
		}
	}
	if len(r.Redis) > 0 {
		fmt.Fprintln(w, "one Redis, workload c\tthreads\tops/s\tops per CPU-second\tratio\twithout the JVM's start\t")
	}
	for _, c := range r.Redis {
		fmt.Fprintf(w, "skerry\t%d\t%.0f\t%.0f\t", c.Threads, c.Skerry.Throughput, c.Skerry.PerCPUSecond)
		if c.YCSB == nil {
			fmt.Fprintln(w)
			continue
		}
		fmt.Fprintf(w, "%.2f\t%.2f\t\n", c.Ratio, c.Kindest)
		fmt.Fprintf(w, "YCSB %s\t%d\t%.0f\t%.0f\t\n", c.YCSB.Version, c.Threads, c.YCSB.Throughput, c.YCSB.PerCPUSecond)
	}
	if a := r.Audit; a != nil {
		fmt.Fprintln(w, "audit, null database\tthreads\tops per CPU-second without\twith\tcosts\t")
		for _, x := range a.Overhead {
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.1f %%\t\n", x.Workload, x.Threads, x.Without, x.With, 100*x.Share)
		}
		if b := a.ReadBack; b != nil {
			fmt.Fprintln(w, "audit, one Redis\tacknowledged writes\trecords read back\tseconds\tpeak MB driving\tpeak MB reading\twrong\t")
			fmt.Fprintf(w, "\t%d\t%d\t%.1f\t%.0f\t%.0f\t%d\t\n", b.Acknowledged, b.Records, b.Seconds,
				float64(b.RunPeak)/1e6, float64(b.AuditPeak)/1e6, b.Wrong)
		}
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
