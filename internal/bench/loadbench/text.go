package loadbench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

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
	return w.Flush()
}
