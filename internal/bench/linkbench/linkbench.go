// Package linkbench measures the userspace link engine against what it was asked for, in
// network namespaces of its own.
package linkbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/bench/tcpstream"
	"skerry/internal/link/userspace"
)

// ErrPart is returned when a part is asked for that does not exist.
var ErrPart = errors.New("no such part of the benchmark")

// Options of a run.
type Options struct {
	// Command starts the emulator's process, as userspace.Options.Command.
	Command []string
	// Thief starts the process that takes processors away, with the share of time behind it.
	Thief []string
	// Against starts the emulator of another program that part cost holds this one against, as
	// Command; none when empty.
	Against []string
	// Steal is that share, 0 to 0.9 of all time; 0 leaves that part out.
	Steal float64
	// Only names the parts to run; all when empty.
	Only []string
	// Quick takes fewer samples: figures to look at, not to publish.
	Quick bool
	// Progress is told what is being measured.
	Progress func(what string)
}

// Result is what was measured. Parts that were not run are empty.
type Result struct {
	Schema   string `json:"schema"`
	Cores    int    `json:"cores"`
	Kernel   string `json:"kernel"`
	Device   string `json:"device"` // tun or veth
	RealTime bool   `json:"real_time"`
	Reason   string `json:"reason,omitempty"` // why not real-time
	// Congestion is TCP's congestion control in the namespaces.
	Congestion string `json:"congestion_control"`
	Quick      bool   `json:"quick"`

	RTT       []RTT       `json:"rtt,omitempty"`
	Sparse    []Sparse    `json:"sparse,omitempty"`
	Bandwidth []Bandwidth `json:"bandwidth,omitempty"`
	Stream    *Stream     `json:"stream,omitempty"`
	Grow      []Grow      `json:"grow,omitempty"`
	Cost      []Cost      `json:"cost,omitempty"`
	Long      *Long       `json:"long,omitempty"`
	Change    *Change     `json:"change,omitempty"`
}

// spareProcs is how many Go processors there are beyond the machine's cores.
const spareProcs = 4

const schema = "skerry/bench-link/v1"

// bench is a run under way.
type bench struct {
	Options
	dir     string // of the emulators' sockets
	threads int    // of the emulators; 0 for their default
	result  Result
}

// parts in the order they run.
var parts = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"rtt", (*bench).rtt},
	{"sparse", (*bench).sparse},
	{"bandwidth", (*bench).bandwidth},
	{"stream", (*bench).stream},
	{"grow", (*bench).grow},
	{"cost", (*bench).cost},
	{"long", (*bench).long},
	{"change", (*bench).change},
}

// Parts are the names that Options.Only may have.
func Parts() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// Run measures. When it fails, what was measured before comes with the error.
func Run(ctx context.Context, o Options) (Result, error) {
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return Result{}, fmt.Errorf("%w: %s: want one of %s", ErrPart, name, strings.Join(Parts(), ", "))
		}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	// A thread that blocks keeps its Go processor while others are idle, and so costs the
	// runtime nothing.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + spareProcs))
	dir, err := os.MkdirTemp("", "skerry-bench")
	if err != nil {
		return Result{}, fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(dir)
	b := &bench{Options: o, dir: dir}
	b.result = Result{Schema: schema, Cores: runtime.NumCPU(), Kernel: kernel(), Congestion: tcpstream.Congestion, Quick: o.Quick}
	for _, p := range parts {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.name) {
			continue
		}
		if err := p.run(b, ctx); err != nil {
			return b.result, fmt.Errorf("bench %s: %w", p.name, err)
		}
	}
	return b.result, nil
}

// start starts an emulator and notes what it is.
func (b *bench) start(ctx context.Context) (*userspace.Engine, error) {
	e, err := userspace.Start(ctx, userspace.Options{
		Command: b.Command, Socket: filepath.Join(b.dir, "link.sock"),
		LogFile: filepath.Join(b.dir, "link.log"), ExitWithOwner: true, Threads: b.threads,
	})
	if err != nil {
		return nil, err
	}
	b.result.Device = string(e.Kind())
	b.result.RealTime, b.result.Reason = e.RealTime()
	return e, nil
}

// pick returns full, or quick in a quick run.
func pick[T any](b *bench, full, quick T) T {
	if b.Quick {
		return quick
	}
	return full
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		slog.Debug("uname", "error", err)
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// spread summarises samples.
type spread struct{ mean, p99, max time.Duration }

func summarise(samples []time.Duration) spread {
	if len(samples) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	var sum time.Duration
	for _, s := range sorted {
		sum += s
	}
	rank := int(math.Ceil(0.99*float64(len(sorted)))) - 1
	return spread{sum / time.Duration(len(sorted)), sorted[max(rank, 0)], sorted[len(sorted)-1]}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
