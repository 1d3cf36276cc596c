// Package linkbench measures the accuracy of the userspace link engine in network namespaces: round trips and bandwidth. Its
// Go benchmarks measure low packet rates, TCP and changes of links.
package linkbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace"
)

// ErrPart is returned for an unknown part of the benchmark.
var ErrPart = errors.New("no such part of the benchmark")

// Options of a run.
type Options struct {
	// Command starts the emulator's process, as userspace.Options.Command.
	Command []string
	// Thief starts the process that takes CPU time. The share of time is appended as an argument.
	Thief []string
	// Steal is the share of CPU time that Thief takes, 0 to 0.9; 0 disables these measurements.
	Steal float64
	// Only names the parts to run; all when empty.
	Only []string
	// Quick takes fewer samples: figures to look at, not to publish.
	Quick bool
	// Progress is called with the name of each measurement.
	Progress func(what string)
}

// Result of the benchmark. Parts that did not run are empty.
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
	Bandwidth []Bandwidth `json:"bandwidth,omitempty"`
}

// spareProcs is how many Go processors there are beyond the machine's cores.
const spareProcs = 4

const schema = "skerry/bench-link/v1"

type bench struct {
	Options
	dir    string // of the emulators' sockets
	result Result
}

var parts = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"rtt", (*bench).measureRTT},
	{"bandwidth", (*bench).measureBandwidth},
}

// Parts are the names that Options.Only may have.
func Parts() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// Run runs the parts of the benchmark. With an error it also returns the results so far.
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
	b.result = Result{Schema: schema, Cores: runtime.NumCPU(), Kernel: kernelRelease(), Congestion: congestionControl, Quick: o.Quick}
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

func (b *bench) startEmulator(ctx context.Context) (*userspace.Engine, error) {
	e, err := userspace.Start(ctx, userspace.Options{
		Command: b.Command, Socket: filepath.Join(b.dir, "link.sock"),
		LogFile: filepath.Join(b.dir, "link.log"), ExitWithOwner: true,
	})
	if err != nil {
		return nil, err
	}
	b.result.Device = string(e.Kind())
	b.result.RealTime, b.result.Reason = e.RealTime()
	return e, nil
}

func pick[T any](b *bench, full, quick T) T {
	if b.Quick {
		return quick
	}
	return full
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		slog.Debug("uname", "error", err)
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

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

const (
	targetMean         = 0.25 // ms, of round trips
	targetP99          = 0.5  // ms
	targetP99Disturbed = 1.0  // ms, beside an unlimited stream, or with stolen processors
	targetBandwidth    = 0.5  // percent
)

// Text writes r as a table, each figure with its target.
func (r Result) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d cores, Linux %s, device %s, real-time %v %s\n\n", r.Cores, r.Kernel, r.Device, r.RealTime, r.Reason)
	fmt.Fprintln(t, "what\tmeasured\treach\t")
	for _, x := range r.RTT {
		p99 := targetP99
		if x.Beside == "tcp" || x.Beside == "steal" {
			p99 = targetP99Disturbed
		}
		fmt.Fprintf(t, "RTT error, scale %s, beside %s\tmean %.3f ms, p99 %.3f, max %.3f, %d of %d lost\tmean %.2f, p99 %.1f\t%s\n",
			format(x.Scale), x.Beside, x.ErrorMean, x.ErrorP99, x.ErrorMax, x.Lost, x.Samples+x.Lost,
			targetMean, p99, verdict(x.ErrorP99 <= p99 && (p99 == targetP99Disturbed || x.ErrorMean <= targetMean)))
		if s := x.SameLink; s != nil {
			fmt.Fprintf(t, "  on the stream's link (%.2f Gbit/s)\tmean %.3f ms, p99 %.3f, max %.3f\tp99 %.1f\t%s\n",
				x.StreamBPS/1e9, s.ErrorMean, s.ErrorP99, s.ErrorMax, p99, verdict(s.ErrorP99 <= p99))
		}
	}
	for _, x := range r.Bandwidth {
		fmt.Fprintf(t, "bandwidth %g Mbit/s\t%.3f Mbit/s, %+.2f %%\twithin %.1f %%\t%s\n", float64(x.Set)/1e6,
			x.Measured/1e6, x.Error, targetBandwidth, verdict(x.Error <= targetBandwidth && -x.Error <= targetBandwidth))
	}
	return t.Flush()
}

func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "MISSED"
}

func format(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
