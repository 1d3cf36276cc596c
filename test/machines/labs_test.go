package machines

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/bench/labbench"
	"skerry/internal/lab"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/transport"
	"skerry/internal/run/multihost"
	"skerry/internal/topology"
	"skerry/test/testkit"
)

// BenchmarkLab brings labs on several machines up and down. The machines are simulated: network namespaces of this
// machine, connected by a bridge, which share its CPUs. Each figure is for one lab.
func BenchmarkLab(b *testing.B) {
	testkit.Need(b, testkit.Root)
	for _, of := range []struct {
		topology string
		machines int
	}{{"azure8", 8}, {"ring:256", 32}, {"ring:800", 8}} {
		b.Run(fmt.Sprintf("%s on %d", of.topology, of.machines), func(b *testing.B) { benchmarkLab(b, of.topology, of.machines) })
	}
}

// benchmarkLab places the nodes on the machines in the order of the topology.
func benchmarkLab(b *testing.B, name string, machines int) {
	ctx := b.Context()
	cloud, err := topology.Load(name)
	if err != nil {
		b.Fatal(err)
	}
	r, err := newRoom(exe, machines)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			b.Error(err)
		}
	}()
	place := map[string]string{}
	for i, n := range cloud.Nodes {
		place[n.Name] = r.machines.Machines[i*machines/len(cloud.Nodes)].Name
	}
	var sums [4]time.Duration
	var memory, silent int64
	began := own()
	for b.Loop() {
		before, err := labbench.SettledMemory(ctx)
		if err != nil {
			b.Fatal(err)
		}
		times, lost, bytes, err := once(ctx, r.machines.Machines, lab.Config{Topology: cloud}, place, before)
		if err != nil {
			b.Fatal(err)
		}
		for i, t := range times {
			sums[i] += t
		}
		memory, silent = memory+bytes, max(silent, int64(lost))
	}
	n := float64(b.N)
	for i, unit := range []string{"s-reach", "s-up", "s-echo", "s-down"} {
		b.ReportMetric(sums[i].Seconds()/n, unit)
	}
	b.ReportMetric((own()-began).Seconds()/n, "s-controller")
	b.ReportMetric(float64(memory)/n/float64(machines)/1e6, "MB/machine")
	b.ReportMetric(float64(silent), "links-silent")
	dir := filepath.Join(r.dir, "counted")
	counted, err := r.counted(dir)
	if err == nil {
		_, _, _, err = once(ctx, counted, lab.Config{Topology: cloud}, place, 0)
	}
	if err != nil {
		b.Fatal(err)
	}
	to, from, err := carried(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(to+from)/1e6, "MB-agents")
}

// own is the CPU time of this process, the controller.
func own() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0 // it cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// once has the durations of one lab: connecting machines, up, round trips, down.
func once(ctx context.Context, machines []inventory.Entry, c lab.Config, place map[string]string, before int64) (took [4]time.Duration, silent int, bytes int64, err error) {
	began := time.Now()
	lap := func(i int) {
		took[i] = time.Since(began)
		began = time.Now()
	}
	m := multihost.New(machines, transport.Options{Exe: exe})
	defer func() { err = errors.Join(err, m.Close()) }()
	c.Name, c.Scale, c.Exe, c.Ephemeral = "bench-machines", 1, exe, true
	if _, err = m.ConfigureLab(ctx, &c, multihost.LabOptions{Place: place}, func(string) {}); err != nil {
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
	after, settled := labbench.SettledMemory(ctx)
	began = time.Now()
	err = errors.Join(echoed, settled, l.Down(context.WithoutCancel(ctx)))
	lap(3)
	return took, silent, before - after, err
}
