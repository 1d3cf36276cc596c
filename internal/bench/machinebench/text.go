package machinebench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// What links between machines may be off more than those on one, in ms.
const targetMean, targetP99 = 0.1, 0.3

// Text writes r as a table, each figure with what is to be reached.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "pretended machines on %d cores\n\n", r.Cores)
	fmt.Fprintln(w, "what\tmeasured\treach\t")
	for _, x := range r.RTT {
		mean, p99 := x.Two.Mean-x.One.Mean, x.Two.P99-x.One.P99
		fmt.Fprintf(w, "RTT error of %d links, %s, beside %s\tmean %.3f ms on two machines, %.3f on one; p99 %.3f, %.3f; max %.3f, %.3f; %d of %d lost\t%+.3f and %+.3f of %.1f and %.1f\t%s\n",
			x.Links, x.Between, x.Beside, x.Two.Mean, x.One.Mean, x.Two.P99, x.One.P99, x.Two.Max, x.One.Max, x.Lost, x.Lost+x.Samples,
			mean, p99, targetMean, targetP99, verdict(mean <= targetMean && p99 <= targetP99))
	}
	for _, x := range r.Stream {
		reach, said := "", ""
		if x.ReachBPS > 0 {
			reach, said = fmt.Sprintf("%.1f", x.ReachBPS/1e9), verdict(x.BPS >= x.ReachBPS)
		}
		fmt.Fprintf(w, "one TCP stream at %g ms, %s\t%.2f Gbit/s (%.2f to %.2f)\t%s\t%s\n", x.LatencyMS, x.Between, x.BPS/1e9, x.Least/1e9, x.Most/1e9, reach, said)
	}
	for _, x := range r.Labs {
		reach, said := "", ""
		if x.GoalMS > 0 {
			reach, said = fmt.Sprintf("up, down %.0f ms", x.GoalMS), verdict(x.UpMS <= x.GoalMS && x.DownMS <= x.GoalMS)
		}
		fmt.Fprintf(w, "%s (%d nodes, %d links) on %d machines\treached in %.0f ms, up %.0f, every link %.0f (%d silent), down %.0f; %.1f MB a machine; the controller's processor %.0f ms, %.2f MB carried\t%s\t%s\n",
			x.Topology, x.Nodes, x.Links, x.Machines, x.ReachMS, x.UpMS, x.EchoMS, x.Silent, x.DownMS, float64(x.MachineBytes)/1e6, x.ControllerMS, float64(x.CarriedBytes)/1e6, reach, said)
	}
	if x := r.Traffic; x != nil {
		fmt.Fprintf(w, "controller while %s on %s and %d machines does %.0f operations/s, %.0f s\t%.2f %% of a core; %.1f kB/s to the agents, %.1f from them\t%.0f %%, %.0f kB/s\t%s\n",
			x.Database, x.Topology, x.Machines, x.OPS, x.Seconds, x.Core, x.ToBPS/1e3, x.FromBPS/1e3, x.ReachCore, x.ReachBPS/1e3,
			verdict(x.Core < x.ReachCore && x.ToBPS+x.FromBPS < x.ReachBPS))
	}
	return w.Flush()
}

func verdict(ok bool) string {
	if ok {
		return "reached"
	}
	return "missed"
}
