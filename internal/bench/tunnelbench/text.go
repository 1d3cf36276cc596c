package tunnelbench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// What is to be reached.
const (
	reachBPS   = 2e9 // bit/s
	reachUpMS  = 3000.0
	reachBytes = 200_000_000
)

// Text writes the result as a table, each figure with what is to be reached.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d cores, Linux %s, WireGuard by the %s\n\n", r.Cores, r.Kernel, r.By)
	fmt.Fprintln(w, "what\tmeasured\treach\t")
	if m := r.Mesh; m != nil {
		fmt.Fprintf(w, "%d tunnels, all answer\t%.0f ms (without encryption %.0f ms)\t%.0f ms\t%s\n",
			m.Tunnels, m.UpMS, m.PlainMS, reachUpMS, verdict(m.UpMS <= reachUpMS))
		if m.ProcessBytes > 0 {
			fmt.Fprintf(w, "  memory of their process\t%.0f MB\t%d MB\t%s\n",
				float64(m.ProcessBytes)/1e6, reachBytes/1_000_000, verdict(m.ProcessBytes <= reachBytes))
		}
	}
	if s := r.Stream; s != nil {
		fmt.Fprintf(w, "one TCP stream, link of %g ms\t%.2f Gbit/s (past the tunnel %.2f)\t%.1f Gbit/s\t%s\n",
			s.LatencyMS, s.BPS/1e9, s.LinkBPS/1e9, reachBPS/1e9, verdict(s.BPS >= reachBPS))
		fmt.Fprintf(w, "  CPU of the tunnels' process\t%.0f %% of a core, emulator %.0f %%\t\t\n", s.CPU*100, s.EmulatorCPU*100)
	}
	return w.Flush()
}

func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "MISSED"
}
