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
	if a := r.Audit; a != nil {
		fmt.Fprintln(w, "audit, null database\tthreads\tops per CPU-second without\twith\tcosts\t")
		for _, x := range a.Overhead {
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.1f %%\t\n", x.Workload, x.Threads, x.Without, x.With, 100*x.Share)
		}
		if b := a.ReadBack; b != nil {
			fmt.Fprintln(w, "audit, one Redis\tacknowledged writes\trecords read back\tseconds\tpeak MB driving\tpeak MB reading\twrong\t")
			fmt.Fprintf(w, "\t%d\t%d\t%.1f\t%.0f\t%.0f\t%d\t\n", b.Acknowledged, b.Records, b.Seconds, float64(b.RunPeak)/1e6, float64(b.AuditPeak)/1e6, b.Wrong)
		}
	}
	return w.Flush()
}
