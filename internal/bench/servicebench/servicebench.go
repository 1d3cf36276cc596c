// Package servicebench measures what service networking and volumes cost: the same requests
// to the same database, in labs that differ in nothing else, one after the other and again
// in another order, so that whatever else the machine does meets all of them.
//
//	a lab and a cluster for each kind, all up ─► round: each kind in turn, in an order drawn anew
//	                                               1 thread    what a request takes
//	                                               n threads   what passes, and what it costs in CPU
//
// An overhead is the difference to none in the same round; its interval is over the rounds.
package servicebench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/evidence/stats"
	"skerry/internal/machine/volume"
	"skerry/internal/topology"
)

// Options of a run.
type Options struct {
	// Exe is the skerry program that agents are started from.
	Exe string
	// Engine makes the links; "" for auto.
	Engine string
	// Database is to be Redis or one that is like it: its clients are told where members are.
	Database     database.Database
	Installation database.Installation
	// Kinds are what to measure beside none, as Kinds names them.
	Kinds []string
	// Volumes are what to measure beside none.
	Volumes []string
	// Rounds is how often each is measured, Time for how long each time.
	Rounds int
	Time   time.Duration
	// Threads is how many requests are made at once where throughput is measured, Records
	// how many there are, of 1 kB.
	Threads int
	Records int64
	// Effort is what is written to measure a volume, each round.
	Effort volume.Effort
	Seed   uint64
	// Progress is told what is being measured.
	Progress func(what string)
}

// Result is what was measured.
type Result struct {
	Schema   string   `json:"schema"`
	Cores    int      `json:"cores"`
	Kernel   string   `json:"kernel"`
	Engine   string   `json:"engine"`
	Database string   `json:"database"`
	Version  string   `json:"version"`
	Rounds   int      `json:"rounds"`
	Seconds  float64  `json:"seconds"` // each kind, each round
	Threads  int      `json:"threads"`
	Records  int64    `json:"records"`
	Seed     uint64   `json:"seed"`
	Services []Cost   `json:"services,omitempty"`
	Volumes  []Volume `json:"volumes,omitempty"`
}

// Cost is what requests cost through one kind of service.
type Cost struct {
	Kind string `json:"kind"`
	Figures
	// Over is the difference to none, round by round; nil for none itself.
	Over *Figures `json:"over_none,omitempty"`
}

// Figures of requests, half of them reads and half updates.
type Figures struct {
	P50        Figure `json:"p50_us"` // with one thread
	P95        Figure `json:"p95_us"`
	Throughput Figure `json:"throughput_ops_s"` // with many
	// CPU is what the whole machine used for a request, the load driver's part included:
	// what the kernel does for a packet belongs to no process.
	CPU Figure `json:"cpu_us_per_request"`
}

// Figure is a value over the rounds.
type Figure struct {
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	// Half is half the width of the mean's 95 % confidence interval; 0 where there are
	// fewer than two rounds.
	Half   float64   `json:"mean_ci95_half_width"`
	Values []float64 `json:"values"` // a round each
}

// Volume is what was measured of one kind of volume.
type Volume struct {
	Kind    string `json:"kind"`
	SyncP50 Figure `json:"fsync_p50_us"`
	SyncP99 Figure `json:"fsync_p99_us"`
	Write   Figure `json:"write_mb_s"`
	Read    Figure `json:"read_mb_s"`
	// Skipped says why it was not measured.
	Skipped string `json:"skipped,omitempty"`
}

const schema = "skerry/bench-service/v1"

// kind is a service by the name that users give it.
type kind struct {
	name    string
	service topology.ServiceSpec
}

var kinds = []kind{
	{"none", topology.ServiceSpec{}},
	{"host-port", topology.ServiceSpec{Kind: topology.HostPort}},
	{"node-port", topology.ServiceSpec{Kind: topology.NodePort}},
	{"service-ip", topology.ServiceSpec{Kind: topology.ServiceIP}},
	{"service-ip-shared", topology.ServiceSpec{Kind: topology.ServiceIP, Members: topology.Shared}},
	{"central", topology.ServiceSpec{Kind: topology.Central}},
}

// Kinds are the names of services that can be measured, none first.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// VolumeKinds are those of volumes, none first.
func VolumeKinds() []string {
	return []string{topology.NoVolume, topology.BindVolume, topology.OverlayVolume, topology.LoopVolume}
}

// Run measures. A database of which none is given is not started, and volumes are measured
// alone.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	r := Result{Schema: schema, Cores: runtime.NumCPU(), Kernel: kernel(), Rounds: o.Rounds, Seconds: o.Time.Seconds(),
		Threads: o.Threads, Records: o.Records, Seed: o.Seed}
	if len(o.Kinds) > 0 {
		r.Database, r.Version = o.Database.Name(), o.Installation.Version
		if err := o.services(ctx, &r); err != nil {
			return r, fmt.Errorf("bench service: %w", err)
		}
	}
	if len(o.Volumes) > 0 {
		if err := o.volumes(ctx, &r); err != nil {
			return r, fmt.Errorf("bench service: volumes: %w", err)
		}
	}
	return r, nil
}

// rounds calls f for each of n things in every round, each time in another order.
func (o Options) rounds(n int, f func(round, i int) error) error {
	random := rand.New(rand.NewPCG(o.Seed, 2))
	for round := range o.Rounds {
		for _, i := range random.Perm(n) {
			if err := f(round, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// figure sums up a value of every round.
func figure(values []float64) Figure {
	e := stats.Of(values)
	f := Figure{Mean: e.Mean, Half: e.HalfWidth, Values: values}
	if sorted := slices.Sorted(slices.Values(values)); len(sorted) > 0 {
		f.Median = (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	}
	return f
}

// over is the difference to none, round by round.
func over(values, none []float64) Figure {
	d := make([]float64, min(len(values), len(none)))
	for i := range d {
		d[i] = values[i] - none[i]
	}
	return figure(d)
}

// withNone puts none before what was asked for, if it is not among it.
func withNone(names []string) []string {
	if slices.Contains(names, topology.NoService) {
		return names
	}
	return append([]string{topology.NoService}, names...)
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// name is what a lab is called: two runs do not meet.
func name(what string) string { return fmt.Sprintf("bench-%s-%d", what, os.Getpid()) }
