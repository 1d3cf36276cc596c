package metabench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// What is to be reached.
const (
	reachRPC     = 2.0 // times HDFS over its RPC
	reachLocal   = 3.0 // times NNThroughputBenchmark
	reachBeside  = 0.8 // of the reads without a writer
	reachBytes   = 200 // of memory for a directory, beside its name
	reachSeconds = 30  // of recovery
	reachAgain   = 3.0 // seconds until writes go on
)

// Text writes the result as tables.
func (r Result) Text(out io.Writer) error {
	fmt.Fprintf(out, "%d cores, Linux %s, %d clients, load %.1f before, %.1f after\n\n", r.Cores, r.Kernel, r.Clients, r.Load[0], r.Load[1])
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\treach\tmeasured\tbeside\t")
	h := r.HDFS
	if h == nil {
		h = &HDFS{}
	}
	times := func(what string, reach, ours, theirs float64, whose string) {
		switch {
		case ours == 0:
		case theirs == 0:
			fmt.Fprintf(w, "%s\t%.0f x %s\t%.0f/s\tnot measured\t\n", what, reach, whose, ours)
		default:
			fmt.Fprintf(w, "%s\t%.0f x %s\t%.0f/s, %.1f x\t%.0f/s\t%s\n", what, reach, whose, ours, ours/theirs, theirs, verdict(ours >= reach*theirs))
		}
	}
	times("durable mkdir over HTTP", reachRPC, r.HTTP.Mkdir, h.Mkdirs, "HDFS' mkdirs over RPC")
	times("ls over HTTP", reachRPC, r.HTTP.List, h.Listings, "HDFS' getListing over RPC")
	times("durable mkdir in process", reachLocal, r.Local.Mkdir, h.LocalMkdirs, "NNThroughputBenchmark's mkdirs")
	times("stat in process", reachLocal, r.Local.Stat, h.LocalStatus, "NNThroughputBenchmark's fileStatus")
	if r.HTTP.List > 0 {
		share := r.HTTP.ListBeside / r.HTTP.List
		fmt.Fprintf(w, "ls while one client does mkdir (%.0f/s)\t%.0f %%\t%.0f/s, %.0f %%\t%.0f/s\t%s\n",
			r.HTTP.MkdirsBeside, 100*reachBeside, r.HTTP.ListBeside, 100*share, r.HTTP.List, verdict(share >= reachBeside))
	}
	if r.Memory.Dirs > 0 {
		fmt.Fprintf(w, "memory per empty directory\tbelow %d bytes\t%.0f bytes\t%d directories\t%s\n", reachBytes, r.Memory.PerDir, r.Memory.Dirs, verdict(r.Memory.PerDir < reachBytes))
	}
	if v := r.Recovery; v.Dirs > 0 {
		fmt.Fprintf(w, "recovery of %d directories\tbelow %d s\t%.1f s\t%d MB resident\t%s\n", v.Dirs, reachSeconds, v.Seconds, v.Resident>>20, verdict(v.Seconds < reachSeconds))
	}
	if v := r.Takeover; len(v.Seconds) > 0 {
		worst := slices.Max(v.Seconds)
		fmt.Fprintf(w, "first write after the leader of three was killed\tbelow %.0f s, none lost\t%.2f s, the longest of %d\t%d of %d acknowledged lost\t%s\n",
			reachAgain, worst, len(v.Seconds), v.Lost, v.Acknowledged, verdict(worst < reachAgain && v.Lost == 0))
	}
	if err := w.Flush(); err != nil || len(r.Locks) == 0 {
		return err
	}
	fmt.Fprintln(out, "\nreads per second below one root, without and with a thread that makes directories there")
	fmt.Fprintln(w, "threads\ttree\tchain of locks\ttree, writer\tchain, writer\t")
	for _, s := range r.Locks {
		fmt.Fprintf(w, "%d\t%.0f\t%.0f\t%.0f\t%.0f\t\n", s.Threads, s.Tree, s.Chain, s.TreeBeside, s.ChainBeside)
	}
	return w.Flush()
}

func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "missed"
}
