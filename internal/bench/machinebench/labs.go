package machinebench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/bench/labbench"
	"skerry/internal/evidence/stats"
	"skerry/internal/lab"
	"skerry/internal/machine/carrier"
	"skerry/internal/machine/inventory"
	"skerry/internal/run/across"
	"skerry/internal/topology"
)

// Lab is a lab on several machines; medians of rounds.
type Lab struct {
	Topology string `json:"topology"`
	Nodes    int    `json:"nodes"`
	Links    int    `json:"links"`
	Machines int    `json:"machines"`
	Rounds   int    `json:"rounds"`
	// ReachMS is until all machines' agents run and their clocks are known, UpMS until the lab is up
	// from then on, EchoMS what a round trip on every link takes, DownMS the end of the lab.
	ReachMS float64 `json:"reach_ms"`
	UpMS    float64 `json:"up_ms"`
	EchoMS  float64 `json:"echo_ms"`
	DownMS  float64 `json:"down_ms"`
	// Silent are links whose round trip brought no answer, in the worst round.
	Silent int `json:"silent"`
	// MachineBytes is by how much this machine's available memory shrank, divided by the machines.
	MachineBytes int64 `json:"machine_bytes"`
	// ControllerMS is the processor time that the asking side takes for all of that.
	ControllerMS float64 `json:"controller_cpu_ms"`
	// CarriedBytes went to and from all agents together, of a round of its own, which no time is taken of.
	CarriedBytes int64 `json:"carried_bytes"`
	// GoalMS is what up and down are to take at most, 0 for no goal.
	GoalMS float64 `json:"goal_ms,omitempty"`
}

// lab measures one, its nodes shared out in the topology's order.
func (o Options) lab(ctx context.Context, to *Result, name string, machines int, goal float64) (err error) {
	cloud, err := topology.Load(name)
	if err != nil {
		return err
	}
	r, err := newRoom(o.Exe, machines)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	place := map[string]string{}
	for i, n := range cloud.Nodes {
		place[n.Name] = r.machines.Machines[i*machines/len(cloud.Nodes)].Name
	}
	x := Lab{Topology: name, Nodes: len(cloud.Nodes), Links: len(cloud.Links), Machines: machines, Rounds: o.Rounds, GoalMS: goal}
	var took [4][]float64
	var used []float64
	var memory []int64
	for i := range o.Rounds {
		o.Progress(fmt.Sprintf("%s on %d machines, %d of %d", name, machines, i+1, o.Rounds))
		before, err := labbench.Settled(ctx)
		if err != nil {
			return err
		}
		was := own()
		times, silent, bytes, err := o.once(ctx, r.machines.Machines, lab.Config{Topology: cloud}, place, before)
		if err != nil {
			return err
		}
		used = append(used, labbench.Milliseconds(own()-was))
		for k, t := range times {
			took[k] = append(took[k], labbench.Milliseconds(t))
		}
		x.Silent, memory = max(x.Silent, silent), append(memory, bytes/int64(machines))
	}
	x.ReachMS, x.UpMS, x.EchoMS, x.DownMS = stats.Median(took[0]), stats.Median(took[1]), stats.Median(took[2]), stats.Median(took[3])
	x.MachineBytes, x.ControllerMS = stats.Median(memory), stats.Median(used)
	counted, err := r.counted(filepath.Join(r.dir, "counted"))
	if err == nil {
		_, _, _, err = o.once(ctx, counted, lab.Config{Topology: cloud}, place, 0)
	}
	if err == nil {
		var to, from int64
		to, from, err = carried(filepath.Join(r.dir, "counted"))
		x.CarriedBytes = to + from
	}
	to.Labs = append(to.Labs, x)
	return err
}

// own is the processor time of this process, which asks the machines.
func own() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0 // it cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// once is a lab's life: how long machines, lab, round trips and end took.
func (o Options) once(ctx context.Context, machines []inventory.Machine, c lab.Config, place map[string]string, before int64) (took [4]time.Duration, silent int, bytes int64, err error) {
	began := time.Now()
	lap := func(i int) {
		took[i] = time.Since(began)
		began = time.Now()
	}
	m := across.New(machines, carrier.Options{Exe: o.Exe})
	defer func() { err = errors.Join(err, m.Close()) }()
	c.Name, c.Scale, c.Exe, c.Ephemeral = "bench-machines", 1, o.Exe, true
	if _, err = m.Onto(ctx, &c, across.Terms{Place: place}, func(string) {}); err != nil {
		return took, 0, 0, err
	}
	lap(0)
	l, err := lab.Up(ctx, c)
	if err != nil {
		return took, 0, 0, err
	}
	lap(1)
	got, echoed := l.Echo(ctx, l.Links(), 1, 0)
	for _, g := range got {
		silent += min(1, g.Lost)
	}
	lap(2)
	after, settled := labbench.Settled(ctx)
	began = time.Now()
	err = errors.Join(echoed, settled, l.Down(context.WithoutCancel(ctx)))
	lap(3)
	return took, silent, before - after, err
}
