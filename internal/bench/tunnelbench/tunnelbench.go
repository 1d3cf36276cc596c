// Package tunnelbench measures links encrypted by WireGuard: how fast one is and what that
// costs, how soon those of a mesh are there and what memory they take.
package tunnelbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/lab"
	"skerry/internal/link/tunnel"
	"skerry/internal/topology"
)

// ErrPart is returned when a part is asked for that does not exist.
var ErrPart = errors.New("no such part of the benchmark")

// Options of a run.
type Options struct {
	// Exe is the skerry program that agents are started from.
	Exe string
	// Tunnels of the mesh.
	Tunnels int
	// Latency of the link that throughput is measured over, one way.
	Latency time.Duration
	// Seconds are how long a stream is measured, each time.
	Seconds int
	// Rounds are how often each figure is taken; medians count.
	Rounds int
	// Only names the parts to run; all when empty.
	Only []string
	// Progress is told what is being measured.
	Progress func(what string)
}

// Result is what was measured. Parts that were not run are empty.
type Result struct {
	Schema string `json:"schema"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	// By is "kernel" where that has WireGuard, else "library".
	By     string  `json:"by"`
	Stream *Stream `json:"stream,omitempty"`
	Mesh   *Mesh   `json:"mesh,omitempty"`
}

// Stream is one TCP stream through a tunnel; medians of rounds.
type Stream struct {
	LatencyMS float64 `json:"latency_ms"` // of the link, one way
	Rounds    int     `json:"rounds"`
	// BPS is the payload carried after slow start, LinkBPS that of a stream over the same
	// link past the tunnel, in turns with it.
	BPS     float64 `json:"bps"`
	LinkBPS float64 `json:"link_bps"`
	// CPU is what the tunnels' process used of a core meanwhile, 0 where the kernel moves
	// the packets; EmulatorCPU what the link's did.
	CPU         float64 `json:"cpu"`
	EmulatorCPU float64 `json:"emulator_cpu"`
}

// Mesh is many tunnels in one lab; medians of rounds.
type Mesh struct {
	Tunnels int `json:"tunnels"`
	Rounds  int `json:"rounds"`
	// UpMS is from the begin of making the lab to an answer over every tunnel; PlainMS what
	// the same lab without encryption takes to an answer over every link.
	UpMS    float64 `json:"up_ms"`
	PlainMS float64 `json:"plain_ms"`
	// ProcessBytes is the memory of the tunnels' process (its proportional set), 0 where the
	// kernel has them.
	ProcessBytes int64 `json:"process_bytes"`
}

const schema = "skerry/bench-wireguard/v1"

// Parts are the names that Options.Only may have.
func Parts() []string { return []string{"mesh", "stream"} }

// spareProcs is how many Go processors there are beyond the machine's cores, for threads
// that block in system calls.
const spareProcs = 4

// Run measures. When it fails, what was measured before comes with the error.
func Run(ctx context.Context, o Options) (r Result, err error) {
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return r, fmt.Errorf("%w: %s: want one of %s", ErrPart, name, strings.Join(Parts(), ", "))
		}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + spareProcs))
	r = Result{Schema: schema, Cores: runtime.NumCPU(), Kernel: kernel(), By: "library"}
	if tunnel.KernelMissing() == nil {
		r.By = "kernel"
	}
	wanted := func(part string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, part) }
	if wanted("mesh") {
		if r.Mesh, err = o.mesh(ctx); err != nil {
			return r, fmt.Errorf("bench wireguard: mesh: %w", err)
		}
	}
	if wanted("stream") {
		if r.Stream, err = o.stream(ctx); err != nil {
			return r, fmt.Errorf("bench wireguard: stream: %w", err)
		}
	}
	return r, nil
}

// within brings a cloud up for as long as f takes, which is told when that began.
func (o Options) within(ctx context.Context, cloud topology.Topology, f func(l *lab.Lab, began time.Time) error) (err error) {
	dir, err := os.MkdirTemp("", "skerry-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	l, err := lab.Up(ctx, lab.Config{
		Name: "bench-wireguard", Topology: cloud, Scale: 1, StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data"),
		Exe: o.Exe, Ephemeral: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(ctx))) }()
	return f(l, began)
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
