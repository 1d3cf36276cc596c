package hydrabench

import (
	"fmt"
	"io"
	"text/tabwriter"
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

// find is the measurement of so many workers, nil where there is none.
func (s Scene) find(system, op string, workers int) *Load {
	for i := range s.Loads {
		if l := &s.Loads[i]; l.System == system && l.Op == op && l.Workers == workers {
			return l
		}
	}
	return nil
}

// most is the largest number of workers of a scene.
func (s Scene) most() (n int) {
	for _, l := range s.Loads {
		n = max(n, l.Workers)
	}
	return n
}

// table compares with what is to be reached.
func table(scenes []Scene) (all []Figure) {
	for _, s := range scenes {
		distance := fmt.Sprintf("%.0f ms", 40*s.Scale)
		add := func(what, reach string, reached bool, format string, args ...any) {
			all = append(all, Figure{what, distance, reach, fmt.Sprintf(format, args...), reached})
		}
		n := s.most()
		if l := s.find(systemHydra, opWrite, n); l != nil {
			add(fmt.Sprintf("writes/s, %d processes", n), fmt.Sprintf("%d (60x %d)", timesDocument*documentWrites, documentWrites), l.Rate >= timesDocument*documentWrites, "%.0f (%d failed)", l.Rate, l.Failed)
			if e := s.find(systemEtcd, opWrite, n); e != nil {
				add(fmt.Sprintf("writes/s against etcd, %d processes", n), ">= 1.0x", l.Rate >= e.Rate, "%.2fx (etcd %.0f)", l.Rate/e.Rate, e.Rate)
			}
		}
		for _, n := range []int{160, 240} {
			l, past := s.find(systemHydra, opWrite, n), s.find(systemDirect, opWrite, n)
			if l != nil && past != nil {
				add(fmt.Sprintf("writes through Raft against past it, %d processes", n), ">= 1.0x, 0 dropped", l.Rate >= past.Rate && l.Failed == 0, "%.2fx, %d dropped (past it %.0f/s, %d dropped)", l.Rate/past.Rate, l.Failed, past.Rate, past.Failed)
			}
		}
		if l := s.find(systemHydra, opWrite, 1); l != nil {
			bound := latencyFactor * (s.Majority + s.Fsync)
			add("write latency, 1 process", fmt.Sprintf("<= %.2f ms (1.1 x (%.2f + %.2f))", bound, s.Majority, s.Fsync), l.P50 <= bound, "median %.2f ms, mean %.2f ms", l.P50, l.Mean)
		}
		if r := s.find(systemHydra, opRead, n); r != nil {
			if l := s.find(systemHydra, opWrite, n); l != nil {
				add(fmt.Sprintf("local reads/s against writes, %d processes", n), ">= 10x", r.Rate >= readsToWrites*l.Rate, "%.1fx (%.0f/s)", r.Rate/l.Rate, r.Rate)
			}
			if past := s.find(systemDirect, opRead, n); past != nil {
				add(fmt.Sprintf("local reads/s against the database alone, %d processes", n), ">= 0.8x", r.Rate >= readsToAlone*past.Rate, "%.2fx (alone %.0f/s)", r.Rate/past.Rate, past.Rate)
			}
		}
		for _, l := range s.Leader {
			add("leader killed: first successful write after", fmt.Sprintf("< %d election timeouts (%.0f ms)", elections, elections*l.Election), l.Election > 0 && l.Seconds*1000 < elections*l.Election, "%.0f ms, election timeout %.0f ms", l.Seconds*1000, l.Election)
		}
		for _, l := range s.Cloud {
			add("cloud lost: takeover through DNS and LB", fmt.Sprintf("< %d s", takeover), l.Seconds < takeover, "%.2f s", l.Seconds)
		}
		if r := s.Rebuild; r != nil {
			add("database rebuilt from nothing", fmt.Sprintf("< %d s for %d rows", rebuildTime, rebuildRows), r.Seconds < rebuildTime && r.Rows >= rebuildRows, "%.1f s for %d rows, %.0f writes/s meanwhile, %d failed", r.Seconds, r.Rows, r.Writes, r.Failed)
		}
		if r := s.Log; r != nil {
			add("log on disk under endless writes", fmt.Sprintf("<= %.0f MB", float64(r.Bound)/1e6), r.Largest <= r.Bound, "%.1f MB at most, %.0f MB written", float64(r.Largest)/1e6, float64(r.Wrote)/1e6)
		}
	}
	return all
}

// Text writes the result as tables.
func (r Result) Text(out io.Writer) error {
	fmt.Fprintf(out, "%d cores, engine %s, payload %d bytes\n", r.Cores, r.Engine, payload)
	for _, s := range r.Scenes {
		fmt.Fprintf(out, "\nClouds %.0f ms apart: measured %.2f ms, nearest majority %.2f ms, fsync %.2f ms\n\n", 40*s.Scale, s.RTT, s.Majority, s.Fsync)
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "SYSTEM\tOP\tWORKERS\tOPS/S\tMEAN MS\tP50\tP95\tP99\tMAX\tFAILED\t")
		for _, l := range s.Loads {
			fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t\n", l.System, l.Op, l.Workers, l.Rate, l.Mean, l.P50, l.P95, l.P99, l.Max, l.Failed)
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
