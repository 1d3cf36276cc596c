package dbtest

import (
	"context"
	"log/slog"
	"maps"
	"syscall"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Start starts a cluster of the installed database and stops it with the test. The first node is Control.
func Start(t testing.TB, d database.Database, env database.Env) database.Cluster {
	t.Helper()
	c, err := TryStart(t, d, env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TryStart is Start for a start that may fail. The caller stops the cluster.
func TryStart(t testing.TB, d database.Database, env database.Env) (database.Cluster, error) {
	t.Helper()
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	env.Installation = in
	if env.Control == nil {
		env.Control = env.Nodes[0]
	}
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	if env.Progress == nil {
		env.Progress = func(string) {}
	}
	return d.Start(t.Context(), env)
}

// Open opens a client and closes it with the test. More is further properties, names and values.
func Open(t testing.TB, d database.Database, properties map[string]string, more ...string) load.Client {
	t.Helper()
	p := maps.Clone(properties)
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	c, err := d.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// CPU benchmarks an operation and reports this process's CPU time: the client's cost without the server.
func CPU(b *testing.B, op func(ctx context.Context) error) {
	b.Helper()
	before := cpuTime(b)
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		if err := op(ctx); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) int64 {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
