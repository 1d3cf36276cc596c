// Package rebalbench measures how long a Redis Cluster over distant sites takes to move
// the slots of a node that leaves or joins, and what its clients notice, by the mover of
// package redis and by redis-cli, in one run on a real lab.
//
//	lab, links at scale 0 ── cluster, records ── links at X or 5X ── clients
//	    baseline ── leave, join ── leave, join ── ...                    pipelined
//	    the same cluster anew ── some slots ── more slots               redis-cli
//
// redis-cli moves one slot after the other, so the time for all of them can be told from
// that for some: the difference between two runs, a slot, times the slots of a node. What
// it takes before the first is counted once.
package rebalbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/evidence/stats"
	"skerry/internal/experiment"
	"skerry/internal/lab"
)

const schema = "skerry/bench-rebalance/v2"

// Options of a run.
type Options struct {
	Exe          string // the skerry program
	Engine       string // of the lab; "" for auto
	Database     database.Database
	Installation database.Installation
	Records      int64
	Scales       []float64 // of the latencies
	Cycles       int       // a leave and a join each, of another node each time
	Slots        [2]int    // that redis-cli moves, in two runs
	AllSlots     bool      // redis-cli moves all of a node's instead, in one: hours, far away
	Progress     func(what string)
}

// Result is what was measured.
type Result struct {
	Schema  string  `json:"schema"`
	Cores   int     `json:"cores"`
	Kernel  string  `json:"kernel"`
	Engine  string  `json:"engine"`
	Redis   string  `json:"redis"`
	Records int64   `json:"records"`
	Masters int     `json:"masters"`
	Scales  []Scale `json:"scales"`
}

// Scale is what was measured at one scale of the latencies. Latencies are of all
// operations of workload A, in ms.
type Scale struct {
	Scale       float64  `json:"scale"`
	BaselineP99 float64  `json:"baseline_p99_ms"`
	Baseline    int64    `json:"baseline_operations"`
	Changes     []Change `json:"changes"`
	CLI         []CLI    `json:"redis_cli"`
	// CLISeconds is how long redis-cli takes for all slots of a node; Extrapolated says that
	// it is told from what it took for some. Faster is that over the median of the leaves.
	CLISeconds   float64 `json:"redis_cli_seconds"`
	Extrapolated bool    `json:"redis_cli_extrapolated"`
	Faster       float64 `json:"faster"`
	// P99Ratio is the 99th percentile while slots moved over the baseline's: of all
	// changes together.
	P99Ratio float64 `json:"p99_ratio"`
}

// Change is one leave or join. The 99th percentile is over the whole seconds that the
// change touched.
type Change struct {
	Node       string  `json:"node"`
	Join       bool    `json:"join"`
	Accepted   float64 `json:"accepted_seconds"`
	Complete   float64 `json:"complete_seconds"`
	Bytes      int64   `json:"bytes"`
	Operations int64   `json:"operations"`
	Failed     int64   `json:"failed"`
	P99        float64 `json:"p99_ms"`
}

// CLI is a run of redis-cli.
type CLI struct {
	Slots   int     `json:"slots"`
	Seconds float64 `json:"seconds"`
	P99     float64 `json:"p99_ms"`
}

// allSlots is how many hash slots a Redis Cluster has.
const allSlots = 16384

// Run measures. The lab is made in a state directory of the run's own.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	r := Result{Schema: schema, Cores: runtime.NumCPU(), Redis: o.Installation.Version, Records: o.Records}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return r, fmt.Errorf("reading the kernel's version: %w", err)
	}
	r.Kernel = unix.ByteSliceToString(name.Release[:])
	text := fmt.Sprintf("name: rebalance\ntopology: azure8\nclient: Singapore\ndatabase: %s\nworkload: {name: a, records: %d}\nstop: {time: 1h}\n",
		o.Database.Name(), o.Records)
	e, err := experiment.Parse("rebalance.yaml", []byte(text), nil, false)
	if err != nil {
		return r, fmt.Errorf("describing the experiment: %w", err)
	}
	r.Masters = len(e.DataNodes())
	for _, scale := range o.Scales {
		s, engine, err := o.measure(ctx, e, scale)
		if err != nil {
			return r, fmt.Errorf("at %g of the latencies: %w", scale, err)
		}
		r.Engine, r.Scales = engine, append(r.Scales, s)
	}
	return r, nil
}

// measure brings a lab up for one scale.
func (o Options) measure(ctx context.Context, e experiment.Experiment, scale float64) (s Scale, engine string, err error) {
	s.Scale = scale
	dir, err := os.MkdirTemp("", "skerry-bench-")
	if err != nil {
		return s, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cloud, err := e.Cloud()
	if err != nil {
		return s, "", err
	}
	l, err := lab.Up(ctx, lab.Config{Name: "rebalance", Topology: cloud, Engine: o.Engine, Exe: o.Exe, Ephemeral: true,
		StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data")})
	if err != nil {
		return s, "", fmt.Errorf("bringing the lab up: %w", err)
	}
	defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(ctx))) }()
	engine, _ = l.Engine()
	w := &world{Options: o, experiment: e, lab: l, scale: scale}
	if err := w.pipelined(ctx, &s); err != nil {
		return s, engine, err
	}
	if err := w.byCLI(ctx, &s); err != nil {
		return s, engine, err
	}
	s.conclude(len(e.DataNodes()))
	return s, engine, nil
}

// conclude tells redis-cli's time for all of a node's slots: that of its only run, or what
// follows from two.
func (s *Scale) conclude(masters int) {
	few, many := s.CLI[0], s.CLI[len(s.CLI)-1]
	s.CLISeconds = few.Seconds
	if s.Extrapolated = few.Slots < allSlots/masters; s.Extrapolated {
		slot := (many.Seconds - few.Seconds) / float64(many.Slots-few.Slots)
		before := max(few.Seconds-slot*float64(few.Slots), 0)
		s.CLISeconds = before + slot*float64(allSlots/masters)
	}
	if m := stats.Median(s.leaves()); m > 0 {
		s.Faster = s.CLISeconds / m
	}
}

// leaves are the seconds that leaves took.
func (s *Scale) leaves() (seconds []float64) {
	for _, c := range s.Changes {
		if !c.Join {
			seconds = append(seconds, c.Complete)
		}
	}
	return seconds
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
