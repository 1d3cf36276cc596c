package routebench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Text writes the result as tables.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d cores, Linux %s; seed %d, %s failures\n\n", r.Cores, r.Kernel, r.Seed, r.Failure)
	fmt.Fprintln(w, "overlay\tnodes\tlinks\tup\tfailures\thealed after: median\tp95\tunhealed\tstretch\tCPU of all nodes")
	for _, o := range r.Overlays {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f ms\t%d\t%.0f ms\t%.0f ms\t%d\t%.3f\t%.1f %% of a core\n",
			o.Name, o.Nodes, o.Links, o.UpMS, len(o.Failures), o.MedianMS, o.P95MS, o.Unhealed, o.Stretch, o.CPU*100)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, o := range r.Overlays {
		if o.Moves == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s follows latency\ttimes\tmoved after: median\tmost\tnever\n", o.Name)
		for _, row := range []struct {
			what string
			all  []Move
		}{{"away, the way in use grows past another", o.Moves.Away}, {"back, it is the shorter one again", o.Moves.Back}} {
			median, most, never := moved(row.all)
			fmt.Fprintf(w, "%s\t%d\t%.0f ms\t%.0f ms\t%d\n", row.what, len(row.all), median, most, never)
		}
		n := o.Moves.Near
		fmt.Fprintf(w, "two ways %g ms apart, jitter %g ms: %d moves in %.0f s\n", n.DifferenceMS, n.JitterMS, n.Moves, n.Seconds)
	}
	return w.Flush()
}
