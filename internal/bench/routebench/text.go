package routebench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Text writes the result as a table.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d cores, Linux %s; %d nodes, %d links, seed %d, %s failures\n\n", r.Cores, r.Kernel, r.Nodes, r.Links, r.Seed, r.Failure)
	fmt.Fprintln(w, "overlay\tup\tfailures\thealed after: median\tp95\tunhealed\tstretch\tCPU of all nodes")
	for _, o := range r.Overlays {
		fmt.Fprintf(w, "%s\t%.0f ms\t%d\t%.0f ms\t%.0f ms\t%d\t%.3f\t%.1f %% of a core\n",
			o.Name, o.UpMS, len(o.Failures), o.MedianMS, o.P95MS, o.Unhealed, o.Stretch, o.CPU*100)
	}
	return w.Flush()
}
