// Package machinebench measures labs on several machines: how true links between machines are, what one
// stream gets over one, how soon labs come and go, and what the controller costs. The machines are pretended, and share this one's
// processors.
package machinebench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// ErrPart is returned when a part is asked for that does not exist.
var ErrPart = errors.New("no such part of the benchmark")

// Options of a run.
type Options struct {
	// Exe is the skerry program that agents are started from.
	Exe string
	// Seconds are how long a stream is measured each time.
	Seconds int
	// Rounds are how often each figure is taken; medians count.
	Rounds int
	// Echoes are the round trips on each link.
	Echoes int
	// Only names the parts to run; all when empty.
	Only []string
	// Progress is told what is being measured.
	Progress func(what string)
}

// Result is what was measured. Parts that were not run are empty.
type Result struct {
	Schema string   `json:"schema"`
	Cores  int      `json:"cores"`
	RTT    []RTT    `json:"rtt,omitempty"`
	Stream []Stream `json:"stream,omitempty"`
	Labs   []Lab    `json:"labs,omitempty"`
	// Traffic is nil where it was not measured.
	Traffic *Traffic `json:"traffic,omitempty"`
}

const schema = "skerry/bench-machines/v1"

// Parts are the names that Options.Only may have.
func Parts() []string { return []string{"rtt", "stream", "lab", "ring", "dense", "traffic"} }

// Run measures. When it fails, what was measured before comes with the error.
func Run(ctx context.Context, o Options) (r Result, err error) {
	r = Result{Schema: schema, Cores: runtime.NumCPU()}
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return r, fmt.Errorf("%w: %s: want one of %s", ErrPart, name, strings.Join(Parts(), ", "))
		}
	}
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"rtt", func() error { r.RTT, err = o.rtt(ctx); return err }},
		{"stream", func() error { r.Stream, err = o.streams(ctx); return err }},
		{"lab", func() error { return o.lab(ctx, &r, "azure8", 8, 3000) }},
		{"ring", func() error { return o.lab(ctx, &r, "ring:256", 32, 0) }},
		{"dense", func() error { return o.lab(ctx, &r, "ring:800", 8, 0) }},
		{"traffic", func() error {
			x, err := o.traffic(ctx)
			if err == nil {
				r.Traffic = &x
			}
			return err
		}},
	} {
		if len(o.Only) > 0 && !slices.Contains(o.Only, part.name) {
			continue
		}
		if err := part.do(); err != nil {
			return r, fmt.Errorf("bench machines: %s: %w", part.name, err)
		}
	}
	return r, nil
}
