package servicebench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Text writes the result as tables.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d cores, Linux %s; %d rounds; medians, and 95 %% confidence intervals of means\n", r.Cores, r.Kernel, r.Rounds)
	if len(r.Services) > 0 {
		fmt.Fprintf(w, "\n%s %s, %d members, %d records, %s engine; latency with 1 thread, throughput and CPU with %d\n\n",
			r.Database, r.Version, members, r.Records, r.Engine, r.Threads)
		fmt.Fprintln(w, "service\tp50 us\tover none\tp95 us\tover none\trequests/s\tover none\tCPU us/request\tover none")
		for _, c := range r.Services {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Kind,
				c.P50.text(), c.over(func(f Figures) Figure { return f.P50 }),
				c.P95.text(), c.over(func(f Figures) Figure { return f.P95 }),
				c.Throughput.text(), c.over(func(f Figures) Figure { return f.Throughput }),
				c.CPU.text(), c.over(func(f Figures) Figure { return f.CPU }))
		}
	}
	if len(r.Volumes) > 0 {
		fmt.Fprintln(w, "\nvolume\tfsync p50 us\tfsync p99 us\twrite MB/s\tread MB/s")
		for _, v := range r.Volumes {
			if v.Skipped != "" {
				fmt.Fprintf(w, "%s\tskipped: %s\n", v.Kind, v.Skipped)
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", v.Kind, v.SyncP50.text(), v.SyncP99.text(), v.Write.text(), v.Read.text())
		}
	}
	return w.Flush()
}

func (f Figure) text() string {
	if f.Half == 0 {
		return fmt.Sprintf("%.4g", f.Median)
	}
	return fmt.Sprintf("%.4g [%.4g, %.4g]", f.Median, f.Mean-f.Half, f.Mean+f.Half)
}

func (c Cost) over(of func(Figures) Figure) string {
	if c.Over == nil {
		return ""
	}
	f := of(*c.Over)
	if f.Half == 0 {
		return fmt.Sprintf("%+.4g", f.Median)
	}
	return fmt.Sprintf("%+.4g [%+.4g, %+.4g]", f.Median, f.Mean-f.Half, f.Mean+f.Half)
}
