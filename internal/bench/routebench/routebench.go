// Package routebench measures how a lab's routing answers to links that fail: how long
// packets are lost, how good the ways are that are found, and what the daemons cost.
package routebench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/evidence/stats"
	"skerry/internal/lab"
	"skerry/internal/lab/overlay/kinds"
	"skerry/internal/topology"
)

// Options of a run.
type Options struct {
	// Exe is the skerry program that agents are started from.
	Exe string
	// Overlays to measure, one after the other.
	Overlays []topology.Overlay
	// Nodes of the meshes, measured one after the other; 8 nodes are azure8, others are
	// drawn.
	Nodes []int
	// Links of each mesh; 0 is eight a node.
	Links int
	// Failures of one link each.
	Failures int
	// Carrier takes links down so that their nodes notice; else they fail silently.
	Carrier bool
	// Moves is how often the latency of a way in use grows past another's and shrinks
	// again, on three nodes; 0 leaves that out.
	Moves int
	// Heal bounds the wait for packets to arrive again.
	Heal time.Duration
	// Seed of the mesh and of what fails.
	Seed uint64
	// Progress is told what is being measured.
	Progress func(what string)
}

// Result is what was measured.
type Result struct {
	Schema   string    `json:"schema"`
	Cores    int       `json:"cores"`
	Kernel   string    `json:"kernel"`
	Seed     uint64    `json:"seed"`
	Failure  string    `json:"failure"` // silent or carrier
	Overlays []Overlay `json:"overlays"`
}

// Overlay is what was measured of one on a mesh.
type Overlay struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Links int    `json:"links"`
	// UpMS is how long the lab took to come up, its first routes included.
	UpMS float64 `json:"up_ms"`
	// CPU is what all daemons together use of one core in steady state, 0 to 1.
	CPU      float64   `json:"cpu"`
	Failures []Failure `json:"failures"`
	// Of the failures that healed: from the failure to the first packet that arrived
	// another way.
	MedianMS float64 `json:"median_ms"`
	P95MS    float64 `json:"p95_ms"`
	// Unhealed failures did not heal within the time given.
	Unhealed int `json:"unhealed"`
	// Stretch is the mean over failures and pairs of the round trip in steady state
	// divided by the best possible one.
	Stretch float64 `json:"stretch"`
	// Moves is how it follows latency, with the first mesh alone; nil where it was not
	// measured.
	Moves *Moves `json:"moves,omitempty"`
}

// Failure is one link that failed.
type Failure struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Link   string  `json:"link"`
	Healed bool    `json:"healed"`
	HealMS float64 `json:"heal_ms"`
	Lost   int     `json:"lost"` // calls without an answer, one each 5 ms
	// SteadyMS is when the round trip was last seen to change after the failure.
	SteadyMS float64 `json:"steady_ms"`
	Stretch  float64 `json:"stretch"`
}

const schema = "skerry/bench-route/v2"

// cpuTime is how long the daemons' use of the CPU is looked at.
const cpuTime = 10 * time.Second

// Run measures. With an error comes what was measured before it.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	failure := "silent"
	if o.Carrier {
		failure = "carrier"
	}
	r := Result{Schema: schema, Cores: runtime.NumCPU(), Kernel: kernel(), Seed: o.Seed, Failure: failure}
	for _, over := range o.Overlays {
		for i, nodes := range o.Nodes {
			one, err := o.measure(ctx, over, nodes)
			if err == nil && i == 0 && o.Moves > 0 {
				var m Moves
				m, err = o.moves(ctx, over)
				one.Moves = &m
			}
			if err != nil {
				return r, fmt.Errorf("bench route: %s, %d nodes: %w", over.Kind, nodes, err)
			}
			r.Overlays = append(r.Overlays, one)
		}
	}
	return r, nil
}

// cloud is the mesh.
func (o Options) cloud(over topology.Overlay, nodes int) (topology.Topology, error) {
	spec := topology.Spec{From: "azure8"}
	if nodes != 8 {
		spec.From = fmt.Sprintf("mesh:%d", nodes)
	}
	spec.Mesh = topology.MeshSpec{Links: cmp.Or(o.Links, 8*nodes), Seed: o.Seed}
	t, err := spec.Build(".", os.ReadFile)
	t.Overlay = over
	return t, err
}

// within brings a cloud up for as long as f takes, which is told how long that took.
func (o Options) within(ctx context.Context, cloud topology.Topology, f func(*lab.Lab, time.Duration) error) (err error) {
	routing, err := kinds.For(ctx, cloud.Overlay)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "skerry-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	l, err := lab.Up(ctx, lab.Config{
		Name: "bench-route", Topology: cloud, Scale: 1, StateDir: filepath.Join(dir, "state"), DataDir: dir,
		Exe: o.Exe, Overlay: routing, Ephemeral: true, Seed: o.Seed,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(ctx))) }()
	return f(l, time.Since(began))
}

func (o Options) measure(ctx context.Context, over topology.Overlay, nodes int) (r Overlay, err error) {
	cloud, err := o.cloud(over, nodes)
	if err != nil {
		return r, err
	}
	r.Name, r.Nodes, r.Links = over.Kind, nodes, len(cloud.Links)
	what := fmt.Sprintf("%s, %d nodes, %d links", r.Name, r.Nodes, r.Links)
	o.Progress(what + ": bringing the mesh up")
	err = o.within(ctx, cloud, func(l *lab.Lab, took time.Duration) error {
		r.UpMS = milliseconds(took)
		m := &mesh{Options: o, lab: l, random: rand.New(rand.NewPCG(o.Seed, 1))}
		if err := m.settle(ctx); err != nil {
			return err
		}
		o.Progress(what + ": CPU of the daemons")
		if r.CPU, err = m.cpu(ctx); err != nil {
			return err
		}
		for i := range o.Failures {
			o.Progress(fmt.Sprintf("%s: failure %d of %d", what, i+1, o.Failures))
			f, err := m.fail(ctx)
			if err != nil {
				return err
			}
			r.Failures = append(r.Failures, f)
		}
		return nil
	})
	r.summarise()
	return r, err
}

func (r *Overlay) summarise() {
	var healed []float64
	var stretch float64
	for _, f := range r.Failures {
		stretch += f.Stretch
		if f.Healed {
			healed = append(healed, f.HealMS)
		} else {
			r.Unhealed++
		}
	}
	if len(r.Failures) > 0 {
		r.Stretch = stretch / float64(len(r.Failures))
	}
	if len(healed) > 0 {
		slices.Sort(healed)
		r.MedianMS = stats.Median(healed)
		r.P95MS = healed[min(len(healed)-1, len(healed)*95/100)]
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
