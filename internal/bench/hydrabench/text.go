package hydrabench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"skerry/internal/evidence/stats"
)

// Figure is a line of the table: what was asked for and what was measured.
type Figure struct {
	What     string `json:"what"`
	Distance string `json:"distance"`
	Reach    string `json:"reach"`
	Measured string `json:"measured"`
	Reached  bool   `json:"reached"`
}

// Figures of the document that it is compared with.
const (
	formerPoll     = 3  // ms between looks at a database, before the log told of it
	documentWrites = 55 // a second, with 240 processes
	timesDocument  = 60
	latencyFactor  = 1.1
	readsToWrites  = 10
	readsToAlone   = 0.8
	elections      = 3
	takeover       = 5  // seconds
	rebuildTime    = 60 // seconds
	rebuildRows    = 1_000_000
)

// comparedWorkers are numbers of workers that goals are about, beside 1.
var comparedWorkers = []int{160, 240}

// series is measurements of the same.
type series []Load

// find is what was measured with so many workers.
func (s Scene) find(system, op string, workers int) (all series) {
	for _, l := range s.Loads {
		if l.System == system && l.Op == op && l.Workers == workers {
			all = append(all, l)
		}
	}
	return all
}

// rate is the median of the rates, p50 that of the median latencies.
func (s series) rate() float64 { return median(s, func(l Load) float64 { return l.Rate }) }
func (s series) p50() float64  { return median(s, func(l Load) float64 { return l.P50 }) }
func (s series) cpu() float64 {
	return median(s, func(l Load) float64 { return l.ClientCPU + l.ServerCPU })
}

func (s series) failed() (n int64) {
	for _, l := range s {
		n += l.Failed
	}
	return n
}

// spread is the least and the largest, and how many there are, of more than one.
func spread[T any](all []T, of func(T) float64, format string) string {
	if len(all) < 2 {
		return ""
	}
	least, most := of(all[0]), of(all[0])
	for _, one := range all {
		least, most = min(least, of(one)), max(most, of(one))
	}
	return fmt.Sprintf(" ["+format+" to "+format+", n=%d]", least, most, len(all))
}

func median[T any](all []T, of func(T) float64) float64 {
	var values []float64
	for _, one := range all {
		values = append(values, of(one))
	}
	return stats.Median(values)
}

func rateOf(l Load) float64    { return l.Rate }
func p50Of(l Load) float64     { return l.P50 }
func secondsOf(l Loss) float64 { return l.Seconds }

// String is the median of the rates with their spread, and what an operation took of the
// processors.
func (s series) String() string {
	return fmt.Sprintf("%.0f/s%s, %.0f µs of a core each", s.rate(), spread(s, rateOf, "%.0f"), s.cpu())
}

// most is the largest number of workers of a scene.
func (s Scene) most() (n int) {
	for _, l := range s.Loads {
		n = max(n, l.Workers)
	}
	return n
}

// table compares with what is to be reached: medians of rates and latencies, and the worst of
// losses.
func table(scenes []Scene) (all []Figure) {
	for _, s := range scenes {
		t := tabler{Scene: s, distance: fmt.Sprintf("%.0f ms", 40*s.Scale)}
		t.writes()
		t.applied()
		t.reads()
		t.losses()
		t.upkeep()
		all = append(all, t.all...)
	}
	return all
}

// tabler makes the figures of one distance.
type tabler struct {
	Scene
	distance string
	all      []Figure
}

func (t *tabler) add(what, reach string, reached bool, format string, args ...any) {
	t.all = append(t.all, Figure{what, t.distance, reach, fmt.Sprintf(format, args...), reached})
}

func (t *tabler) writes() {
	n := t.most()
	if l := t.find(systemHydra, opWrite, n); l != nil {
		t.add(fmt.Sprintf("writes/s, %d processes", n), fmt.Sprintf("%d (60x %d)", timesDocument*documentWrites, documentWrites), l.rate() >= timesDocument*documentWrites, "%v, %d failed", l, l.failed())
		if e := t.find(systemEtcd, opWrite, n); e != nil {
			t.add(fmt.Sprintf("writes/s against etcd, %d processes", n), ">= 1.0x", l.rate() >= e.rate(), "%.2fx (etcd %v)", l.rate()/e.rate(), e)
		}
	}
	for _, n := range comparedWorkers {
		l, past := t.find(systemHydra, opWrite, n), t.find(systemDirect, opWrite, n)
		if l != nil && past != nil {
			t.add(fmt.Sprintf("writes through Raft against past it, %d processes", n), ">= 1.0x, 0 dropped", l.rate() >= past.rate() && l.failed() == 0, "%.2fx, %d dropped (past it %v, %d dropped)", l.rate()/past.rate(), l.failed(), past, past.failed())
		}
	}
	if l := t.find(systemHydra, opWrite, 1); l != nil {
		bound := latencyFactor * (t.Majority + t.Fsync)
		t.add("write latency, 1 process", fmt.Sprintf("<= %.2f ms (1.1 x (%.2f + %.2f))", bound, t.Majority, t.Fsync), l.p50() <= bound, "median %.2f ms%s", l.p50(), spread(l, p50Of, "%.2f"))
		if e := t.find(systemEtcd, opWrite, 1); e != nil {
			t.add("write latency against etcd, 1 process", "<= 1.0x", l.p50() <= e.p50(), "%.2fx (etcd: median %.2f ms%s)", l.p50()/e.p50(), e.p50(), spread(e, p50Of, "%.2f"))
		}
		if e := t.find(systemEtcd5, opWrite, 1); e != nil {
			t.add("write latency against etcd with as many members, 1 process", "<= 1.0x", l.p50() <= e.p50(), "%.2fx (etcd: median %.2f ms%s)", l.p50()/e.p50(), e.p50(), spread(e, p50Of, "%.2f"))
		}
	}
}

// applied is about writes that are answered when the database of the member that was asked has
// them: nobody looks again and again whether it does.
func (t *tabler) applied() {
	var all series
	for _, l := range t.Loads {
		if l.Op == opApply {
			all = append(all, l)
		}
	}
	write := t.find(systemHydra, opWrite, 1)
	if len(all) == 0 || len(write) == 0 {
		return
	}
	bound := write.p50() + formerPoll
	worst := slices.MaxFunc(all, func(a, b Load) int { return cmp.Compare(a.P50, b.P50) })
	t.add("applied write, asked of each member in turn, 1 process", fmt.Sprintf("< %.2f ms (a write's and a poll's %d)", bound, formerPoll), worst.P50 < bound, "median %.2f ms%s, the slowest %s", all.p50(), spread(all, p50Of, "%.2f"), worst.At)
}

func (t *tabler) reads() {
	n := t.most()
	r := t.find(systemHydra, opRead, n)
	if r == nil {
		return
	}
	if l := t.find(systemHydra, opWrite, n); l != nil {
		t.add(fmt.Sprintf("local reads/s against writes, %d processes", n), ">= 10x", r.rate() >= readsToWrites*l.rate(), "%.1fx (%v)", r.rate()/l.rate(), r)
	}
	if past := t.find(systemDirect, opRead, n); past != nil {
		t.add(fmt.Sprintf("local reads/s against the database alone, %d processes", n), ">= 0.8x", r.rate() >= readsToAlone*past.rate(), "%.2fx (alone %v)", r.rate()/past.rate(), past)
	}
}

func (t *tabler) losses() {
	if len(t.Leader) > 0 {
		most := slices.MaxFunc(t.Leader, func(a, b Loss) int { return cmp.Compare(a.Seconds, b.Seconds) })
		election := median(t.Leader, func(l Loss) float64 { return l.Election })
		t.add("leader killed: first successful write after", fmt.Sprintf("< %d election timeouts (%.0f ms)", elections, elections*election), election > 0 && most.Seconds*1000 < elections*election,
			"median %.2f s%s, election timeout %.0f ms", median(t.Leader, secondsOf), spread(t.Leader, secondsOf, "%.2f"), election)
	}
	if len(t.Cloud) > 0 {
		most := slices.MaxFunc(t.Cloud, func(a, b Loss) int { return cmp.Compare(a.Seconds, b.Seconds) })
		t.add("cloud lost: takeover through DNS and LB", fmt.Sprintf("< %d s", takeover), most.Seconds < takeover, "median %.2f s%s", median(t.Cloud, secondsOf), spread(t.Cloud, secondsOf, "%.2f"))
	}
}

func (t *tabler) upkeep() {
	if r := t.Rebuild; r != nil {
		t.add("database rebuilt from nothing", fmt.Sprintf("< %d s for %d rows", rebuildTime, rebuildRows), r.Seconds < rebuildTime && r.Rows >= rebuildRows,
			"%.1f s for %d rows; meanwhile %.0f writes/s (slowest %.0f ms, %d failed), %.0f reads/s there (slowest %.0f ms, %d failed)",
			r.Seconds, r.Rows, r.Writes.Rate, r.Writes.Max, r.Writes.Failed, r.Reads.Rate, r.Reads.Max, r.Reads.Failed)
	}
	if r := t.Log; r != nil {
		t.add("log on disk under endless writes", fmt.Sprintf("<= %.0f MB", float64(r.Bound)/1e6), r.Largest <= r.Bound, "%.1f MB at most, %.0f MB written", float64(r.Largest)/1e6, float64(r.Wrote)/1e6)
	}
}

// Text writes the result as tables.
func (r Result) Text(out io.Writer) error {
	fmt.Fprintf(out, "%d cores, engine %s, payload %d bytes\n", r.Cores, r.Engine, payload)
	for _, s := range r.Scenes {
		fmt.Fprintf(out, "\nClouds %.0f ms apart: measured %.2f ms, nearest majority %.2f ms, fsync %.2f ms\n\n", 40*s.Scale, s.RTT, s.Majority, s.Fsync)
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "SYSTEM\tOP\tWORKERS\tOPS/S\tMEAN MS\tP50\tP95\tP99\tMAX\tFAILED\tCPU µs\tWRITES/OP\tPACE µs\t")
		for _, l := range s.Loads {
			fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%.0f+%.0f\t%.2f\t%.0f\t\n", l.System, strings.TrimSpace(l.Op+" "+l.At), l.Workers, l.Rate, l.Mean, l.P50, l.P95, l.P99, l.Max, l.Failed, l.ClientCPU, l.ServerCPU, l.Writes, l.Pace)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tCLOUDS\tREACH\tMEASURED\tREACHED")
	for _, f := range r.Table {
		reached := "no"
		if f.Reached {
			reached = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", f.What, f.Distance, f.Reach, f.Measured, reached)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "\n%s", n)
	}
	_, err := fmt.Fprintln(out)
	return err
}
