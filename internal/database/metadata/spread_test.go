package metadata_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/metadata"
	"skerry/internal/load"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

const patience = 60 * time.Second

// start starts servers on a number of nodes, with the client on one more.
func start(t *testing.T, nodes int, o database.Options) (database.Cluster, []host.Host) {
	t.Helper()
	db, hosts := metadata.New(), testhost.Loopback(t, nodes+1)
	in, err := db.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := db.Start(ctx, database.Env{Nodes: hosts[:nodes], Control: hosts[nodes], Installation: in, Options: o, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c, hosts
}

// drive loads a workload and runs a number of its operations.
func drive(t *testing.T, c database.Cluster, w *mdtest.Workload, operations int64) load.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	open := func(ctx context.Context) (load.Client, error) { return metadata.New().Open(ctx, c.Properties()) }
	records, _, err := ycsb.Parse(ycsb.Properties{"recordcount": "60", "operationcount": "0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	spec := load.Spec{Phase: load.PhaseLoad, Workload: records, Tree: w, Threads: 4, Seed: 3}
	if _, err := load.Run(ctx, spec, open, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Count(ctx); err != nil || n != w.Records {
		t.Fatalf("%d files are counted after a load of %d: %v", n, w.Records, err)
	}
	spec.Phase, spec.Operations = load.PhaseRun, operations
	r, err := load.Run(ctx, spec, open, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func workload(t *testing.T, name string, p map[string]string) *mdtest.Workload {
	t.Helper()
	w, err := mdtest.Parse(name, 60, p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Workloads run on a tree that is distributed over servers with replicas on the next nodes: the data of a killed node
// stay available.
func TestSpread(t *testing.T) {
	c, hosts := start(t, 3, database.Options{"servers": "node", "replicas": 3})
	everywhere := map[string]string{"files": "5", "home": "all", "shared": "0.4"}
	for _, name := range mdtest.Names() {
		w := workload(t, name, everywhere)
		w.Mix = mdtest.Mix{List: 1, Stat: 1, Create: 1, Mkdir: 1, Rename: 1, Remove: 1}
		r := drive(t, c, w, 150)
		if r.OK != 150 || len(r.Errors) > 0 {
			t.Errorf("%s: %d of 150 operations ended well: %+v", name, r.OK, r.Errors)
		}
		for k := range mdtest.Kinds {
			if o := r.Operations[k.String()]; w.Uses(k) && (o == nil || o.Latency.Service.Count() != o.OK) {
				t.Errorf("%s: no latencies of %v: %+v", name, k, o)
			}
		}
	}
	if _, err := c.Join(t.Context(), hosts[3]); !errors.Is(err, database.ErrUnsupported) {
		t.Errorf("a join of a spread tree: %v", err)
	}
	if _, err := c.Leave(t.Context(), hosts[0], database.Graceful); !errors.Is(err, database.ErrUnsupported) {
		t.Errorf("a leave of a spread tree: %v", err)
	}
	if err := c.Halt(t.Context(), hosts[1], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	members, err := c.Members(t.Context())
	if err != nil || len(members) != 3 || members[1].State != "unreachable" || members[0].State == "unreachable" || members[0].Share != 1 {
		t.Errorf("members after one was killed: %+v, %v", members, err)
	}
	// Operations sent to a leader that died may be in doubt; later ones succeed.
	if r := drive(t, c, workload(t, mdtest.Namespace, everywhere), 100); r.OK < 90 {
		t.Errorf("with one node lost, %d of 100 operations succeeded: %+v", r.OK, r.Errors)
	}
	if err := c.Revive(t.Context(), hosts[1]); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for err = c.Ready(ctx); err != nil && ctx.Err() == nil; err = c.Ready(ctx) {
		<-time.After(50 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("after all were revived: %v", err)
	}
}
