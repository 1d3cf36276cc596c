package labbench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Text writes the result as a table, each figure with its target.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d cores, Linux %s, engine %s\n\n", r.Cores, r.Kernel, r.Engine)
	fmt.Fprintln(w, "topology\tlinks\tup\treach\tdown\treach\tmemory a node\treach")
	for _, l := range r.Labs {
		fmt.Fprintf(w, "%s\t%d\t%.0f ms\t%.0f ms\t%.0f ms\t%.0f ms\t%.2f MB\t%.2f MB\n", l.Topology, l.Links,
			l.UpMS, l.ReachUpMS, l.DownMS, l.ReachDownMS, float64(l.NodeBytes)/1e6, float64(l.ReachNodeBytes)/1e6)
	}
	return w.Flush()
}
