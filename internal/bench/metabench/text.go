package metabench

import (
	"errors"
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
	if err := errors.Join(w.Flush(), r.hot(out)); err != nil || len(r.Locks) == 0 {
		return err
	}
	fmt.Fprintln(out, "\nreads per second below one root, without and with a thread that makes directories there")
	fmt.Fprintln(w, "threads\ttree\tchain of locks\ttree, writer\tchain, writer\t")
	for _, s := range r.Locks {
		fmt.Fprintf(w, "%d\t%.0f\t%.0f\t%.0f\t%.0f\t\n", s.Threads, s.Tree, s.Chain, s.TreeBeside, s.ChainBeside)
	}
	return w.Flush()
}

// hot writes what one directory takes.
func (r Result) hot(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var alone float64 // one server's rate, with the same processors
	for i, c := range r.Hot.Creations {
		if i == 0 {
			fmt.Fprintf(out, "\ndurable creations in one directory, in parts on servers that are processes of this machine, %d clients\n", r.Clients)
			fmt.Fprintln(w, "servers\tprocessors\tcreations/s\tof one server's\tbusy: servers\tclients\tbound by\t")
		}
		if c.Servers == 1 {
			alone = c.Creates
		}
		fmt.Fprintf(w, "%d\t%s\t%.0f\t%.2f x\t%.2f\t%.2f\t%s\t\n", c.Servers, coresEach(c.Share), c.Creates, c.Creates/alone, c.ServersBusy, c.ClientsBusy, c.boundBy(r.Cores))
	}
	if err := w.Flush(); err != nil || r.Hot.Filled == nil {
		return err
	}
	f := *r.Hot.Filled
	fmt.Fprintf(out, "\na directory in parts on %d servers, filled by %d clients with %d creations a request\n", f.Servers, fillClients, fillBatch)
	fmt.Fprintln(w, "entries\tseconds\tcreations/s\tresident\tan entry\t")
	before := 0
	for _, s := range f.Steps {
		fmt.Fprintf(w, "%d\t%.1f\t%.0f\t%d MB\t%d bytes\t\n", s.Entries, s.Seconds, float64(s.Entries-before)/s.Seconds, s.Resident>>20, s.Resident/int64(s.Entries))
		before = s.Entries
	}
	fmt.Fprintf(w, "ls: %d entries in %d pages\t%.1f\t\t\tlongest page %.0f ms\t\n", f.Entries, f.Pages, f.ListSeconds, 1000*f.LongestPage)
	return w.Flush()
}

// allBusy is the part of the processors above which they bound what was measured.
const allBusy = 0.9

// boundBy is what the rate was bound by.
func (c Creations) boundBy(cores int) string {
	switch {
	case c.ServersBusy+c.ClientsBusy >= allBusy*float64(cores):
		return fmt.Sprintf("the machine's %d processors", cores)
	case c.Share > 0 && c.ServersBusy >= allBusy*c.Share*float64(c.Servers):
		return "the servers' processors"
	}
	return "waiting: disk and turns"
}

func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "missed"
}
