// Package dbbench measures databases as the laboratory runs them: how long a cluster takes
// to be ready from an installed state, what memory a node takes, what its client costs
// beside a loop written by hand over the same driver, and how many rows are lost when
// members join and leave at random under load.
//
//	Run ──► lab, cluster on its nodes
//	          └─ client's node: skerry agent bench ──► Serve: cost, or the writers
package dbbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"

	"skerry/internal/database"
	"skerry/internal/database/churn"
)

// ErrPart is a part that there is not.
var ErrPart = errors.New("no such part of the benchmark")

// Parts of the benchmark.
const (
	PartReady = "ready"
	PartCost  = "cost"
	PartChurn = "churn"
)

// Options of a run.
type Options struct {
	// Databases by name, and the names of those to measure.
	Databases map[string]database.Database
	Names     []string
	// Settings are the options of the databases' clusters.
	Settings database.Options
	// Nodes of the cluster whose start is timed; a database that cannot have so many has
	// as many as it can.
	Nodes int
	// Changes of membership, and the seed that decides which.
	Changes int
	Seed    uint64
	// Only names the parts; all when empty.
	Only   []string
	Engine string
	// Exe is the skerry program that agents are started from.
	Exe      string
	Progress func(what string)
}

// Result is what was measured.
type Result struct {
	Schema    string     `json:"schema"`
	Cores     int        `json:"cores"`
	Engine    string     `json:"engine"`
	Databases []Database `json:"databases"`
}

// Database is one database.
type Database struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Nodes of the cluster that was timed: ReadySeconds from the call of Start until it
	// serves, NodeBytes resident of a node then, on average.
	Nodes        int     `json:"nodes,omitempty"`
	ReadySeconds float64 `json:"ready_s,omitempty"`
	NodeBytes    int64   `json:"node_bytes,omitempty"`
	// Cost is the client's; Churn is what random joins and leaves did.
	Cost  *Cost         `json:"cost,omitempty"`
	Churn *churn.Report `json:"churn,omitempty"`
	// Notes say what was left out, and why.
	Notes []string `json:"notes,omitempty"`
}

// Cost is what a client costs: whole records read in a closed loop, operations per second
// of CPU that the client's process used, medians of rounds in turn.
type Cost struct {
	Threads     int     `json:"threads"`
	Operations  int64   `json:"operations"` // of a round
	Rounds      int     `json:"rounds"`
	Client      float64 `json:"client_ops_cpu_s"`
	Handwritten float64 `json:"handwritten_ops_cpu_s,omitempty"` // 0: the package has none
}

// Share is the client's rate as a part of the hand-written loop's, 0 without one.
func (c Cost) Share() float64 {
	if c.Handwritten == 0 {
		return 0
	}
	return c.Client / c.Handwritten
}

const schema = "skerry/bench-database/v1"

// Run measures. Labs are made in a state directory of the run's own.
func Run(ctx context.Context, o Options) (Result, error) {
	r := Result{Schema: schema, Cores: runtime.NumCPU()}
	for _, p := range o.Only {
		if p != PartReady && p != PartCost && p != PartChurn {
			return r, fmt.Errorf("%w: %q (there are %s, %s, %s)", ErrPart, p, PartReady, PartCost, PartChurn)
		}
	}
	for _, name := range o.Names {
		db, err := database.Choose(o.Databases, name)
		if err != nil {
			return r, err
		}
		in, err := database.Locate(db, "", "")
		if err != nil {
			return r, err
		}
		b := &bench{Options: o, db: db, in: in, result: Database{Name: name, Version: in.Version}}
		if err := b.measure(ctx); err != nil {
			return r, fmt.Errorf("measuring %s: %w", name, err)
		}
		r.Engine = b.engine
		r.Databases = append(r.Databases, b.result)
	}
	return r, nil
}

func (o Options) wanted(part string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, part) }

// Text writes the result as a table.
func (r Result) Text(w io.Writer) error {
	fmt.Fprintf(w, "%d cores, engine %s\n\n", r.Cores, r.Engine)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DATABASE\tVERSION\tNODES\tREADY S\tMB A NODE\tOPS/CPU-S\tBY HAND\tSHARE\tCHANGES\tROWS\tLOST")
	for _, d := range r.Databases {
		fmt.Fprintf(t, "%s\t%s", d.Name, d.Version)
		if d.ReadySeconds > 0 {
			fmt.Fprintf(t, "\t%d\t%.1f\t%.0f", d.Nodes, d.ReadySeconds, float64(d.NodeBytes)/1e6)
		} else {
			fmt.Fprint(t, "\t-\t-\t-")
		}
		switch c := d.Cost; {
		case c == nil:
			fmt.Fprint(t, "\t-\t-\t-")
		case c.Handwritten == 0:
			fmt.Fprintf(t, "\t%.0f\t-\t-", c.Client)
		default:
			fmt.Fprintf(t, "\t%.0f\t%.0f\t%.0f %%", c.Client, c.Handwritten, 100*c.Share())
		}
		if c := d.Churn; c != nil {
			fmt.Fprintf(t, "\t%d\t%d\t%d\n", len(c.Steps), c.Rows, c.Lost+c.Stale)
		} else {
			fmt.Fprint(t, "\t-\t-\t-\n")
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, d := range r.Databases {
		for _, note := range d.Notes {
			fmt.Fprintf(w, "\n%s: %s", d.Name, note)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}
