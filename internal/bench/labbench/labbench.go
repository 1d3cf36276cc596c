// Package labbench measures how fast labs come up and go down, and what a node costs.
package labbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/evidence/stats"
	"skerry/internal/kernel/procfs"
	"skerry/internal/lab"
	"skerry/internal/topology"
)

// Options of a run.
type Options struct {
	// Exe is the skerry program that agents are started from.
	Exe string
	// Progress is called with the name of each measurement.
	Progress func(what string)
}

// Result contains the measured values.
type Result struct {
	Schema string `json:"schema"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Engine string `json:"engine"`
	Labs   []Lab  `json:"labs"`
}

// Lab is the result of one topology. Times are medians.
type Lab struct {
	Topology string  `json:"topology"`
	Nodes    int     `json:"nodes"`
	Links    int     `json:"links"`
	Runs     int     `json:"runs"`
	UpMS     float64 `json:"up_ms"`
	DownMS   float64 `json:"down_ms"`
	// NodeBytes is the decrease of available memory, including the emulator, divided by the number of nodes. With few
	// nodes the noise of some megabytes is large.
	NodeBytes int64 `json:"node_bytes"`
	// The targets.
	ReachUpMS      float64 `json:"reach_up_ms"`
	ReachDownMS    float64 `json:"reach_down_ms"`
	ReachNodeBytes int64   `json:"reach_node_bytes"`
}

const schema = "skerry/bench-lab/v1"

var cases = []struct {
	topology string
	up, down float64
}{
	{"azure8", 200, 200},
	{"ring:256", 2000, 2000},
	{"ring:1000", 8000, 8000},
}

const (
	reachNode = 500_000
	// runs of each topology; their median counts.
	runs = 3
)

// Run measures. Labs are made in a state directory of the run's own.
func Run(ctx context.Context, o Options) (Result, error) {
	r := Result{Schema: schema, Cores: runtime.NumCPU()}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return r, fmt.Errorf("read the kernel's version: %w", err)
	}
	r.Kernel = unix.ByteSliceToString(name.Release[:])
	dir, err := os.MkdirTemp("", "skerry-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir) // of a directory that holds nothing by then
	for _, c := range cases {
		cloud, err := topology.Load(c.topology)
		if err != nil {
			return r, err
		}
		m := Lab{
			Topology: c.topology, Nodes: len(cloud.Nodes), Links: len(cloud.Links), Runs: runs,
			ReachUpMS: c.up, ReachDownMS: c.down, ReachNodeBytes: reachNode,
		}
		if r.Engine, err = o.measureLab(ctx, dir, cloud, &m); err != nil {
			return r, fmt.Errorf("%s: %w", c.topology, err)
		}
		r.Labs = append(r.Labs, m)
	}
	return r, nil
}

func (o Options) measureLab(ctx context.Context, dir string, cloud topology.Topology, m *Lab) (engine string, err error) {
	var up, down []float64
	var memory []int64
	for i := range runs {
		o.Progress(fmt.Sprintf("%s, run %d of %d", m.Topology, i+1, runs))
		before, err := SettledMemory(ctx)
		if err != nil {
			return "", err
		}
		begin := time.Now()
		l, err := lab.Up(ctx, lab.Config{
			Name: "bench", Topology: cloud, Scale: 1, Exe: o.Exe, Ephemeral: true,
			StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data"),
		})
		if err != nil {
			return "", err
		}
		up = append(up, milliseconds(time.Since(begin)))
		engine, _ = l.Engine()
		after, memoryErr := SettledMemory(ctx)
		begin = time.Now()
		if err := errors.Join(memoryErr, l.Down(ctx)); err != nil {
			return engine, err
		}
		down = append(down, milliseconds(time.Since(begin)))
		memory = append(memory, (before-after)/int64(m.Nodes))
	}
	m.UpMS, m.DownMS, m.NodeBytes = stats.Median(up), stats.Median(down), stats.Median(memory)
	return engine, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

const (
	// settleInterval is the interval of memory readings. The kernel frees namespaces seconds after their removal.
	settleInterval = 500 * time.Millisecond
	// settleTolerance is the maximum change between two readings of settled memory, in bytes.
	settleTolerance = 256 << 10
	settleAttempts  = 40
)

// SettledMemory returns the machine's available memory in bytes once it has stopped changing.
func SettledMemory(ctx context.Context) (int64, error) {
	last, err := procfs.AvailableMemory()
	for range settleAttempts {
		if err != nil {
			return 0, err
		}
		if err := linger.For(ctx, settleInterval); err != nil {
			return 0, err
		}
		var now int64
		if now, err = procfs.AvailableMemory(); err == nil && max(now-last, last-now) < settleTolerance {
			return now, nil
		}
		last = now
	}
	return last, err
}

// Text writes the result as a table, each figure with its target.
func (r Result) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d cores, Linux %s, engine %s\n\n", r.Cores, r.Kernel, r.Engine)
	fmt.Fprintln(w, "topology\tlinks\tup\treach\tdown\treach\tmemory a node\treach")
	for _, l := range r.Labs {
		fmt.Fprintf(w, "%s\t%d\t%.0f ms\t%.0f ms\t%.0f ms\t%.0f ms\t%.2f MB\t%.2f MB\n", l.Topology, l.Links,
			l.UpMS, l.ReachUpMS, l.DownMS, l.ReachDownMS, float64(l.NodeBytes)/1e6, float64(l.ReachNodeBytes)/1e6)
	}
	return w.Flush()
}
