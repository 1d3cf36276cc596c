package rebalbench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"skerry/internal/evidence/stats"
)

// What is to be reached.
const (
	reachSeconds = 30
	reachFaster  = 50
	reachRatio   = 2
)

// Text writes the result as tables.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d cores, Linux %s, engine %s, Redis %s, %d records, %d masters\n", r.Cores, r.Kernel, r.Engine, r.Redis, r.Records, r.Masters)
	for _, s := range r.Scales {
		fmt.Fprintf(w, "\nlatencies times %g; clients' p99 at rest %.1f ms over %d operations\n", s.Scale, s.BaselineP99, s.Baseline)
		fmt.Fprintln(w, "change\tnode\taccepted\tcomplete\tmoved\tclients' p99\toperations\tfailed")
		for _, c := range s.Changes {
			kind := "leave"
			if c.Join {
				kind = "join"
			}
			fmt.Fprintf(w, "%s\t%s\t%.2f s\t%.2f s\t%.2f MB\t%.1f ms\t%d\t%d\n", kind, c.Node, c.Accepted, c.Complete,
				float64(c.Bytes)/1e6, c.P99, c.Operations, c.Failed)
		}
		for _, c := range s.CLI {
			fmt.Fprintf(w, "redis-cli\t%d slots\t\t%.1f s\t\t%.1f ms\n", c.Slots, c.Seconds, c.P99)
		}
		if s.Extrapolated {
			fmt.Fprintf(w, "redis-cli\tall of a node's slots, extrapolated\t\t%.0f s\n", s.CLISeconds)
		}
		fmt.Fprintf(w, "\t\tmeasured\treach\n")
		fmt.Fprintf(w, "leave, median\t\t%.2f s\tbelow %d s\n", stats.Median(s.leaves()), reachSeconds)
		fmt.Fprintf(w, "than redis-cli\t\t%.0f x faster\t%d x\n", s.Faster, reachFaster)
		fmt.Fprintf(w, "clients' p99 while slots move\t\t%.2f x that at rest\tbelow %d x\n", s.P99Ratio, reachRatio)
	}
	return w.Flush()
}
