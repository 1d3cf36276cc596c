package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// The management of a cluster is tested with fake servers, which speak MongoDB's protocol to the real driver and answer
// according to its documentation. TestConformance tests real servers if they are installed.
func TestClientAgainstFakeServer(t *testing.T) {
	t.Run("a replica set", testReplicaSet)
	t.Run("halts and revivals", testHaltAndRevive)
	t.Run("shards on three nodes", testThreeNodeCluster)
	t.Run("shards of three members", testProductionCluster)
	t.Run("an unknown node", testUnknownNode)
}

func startFake(t *testing.T, w *world, nodes []host.Host, o database.Options) *cluster {
	t.Helper()
	c, err := New().Start(t.Context(), database.Env{Nodes: nodes, Control: nodes[0], Options: o,
		Installation: database.Installation{Programs: map[string]string{"mongod": "mongod", "mongos": "mongos"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c.(*cluster)
}

func states(t *testing.T, c *cluster) string {
	t.Helper()
	members, err := c.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range members {
		all = append(all, m.Node+": "+m.State)
	}
	return strings.Join(all, "; ")
}

func expectStates(t *testing.T, c *cluster, want string) {
	t.Helper()
	if got := states(t, c); got != want {
		t.Errorf("members\n     %s\nwant %s", got, want)
	}
}

func testReplicaSet(t *testing.T) {
	w := newWorld()
	nodes := fakeHosts(t, w, 4)
	c := startFake(t, w, nodes[:3], database.Options{"priorities": "n2=5", "write_concern": "majority", "election_timeout": "2s"})
	ctx := t.Context()
	expectStates(t, c, "n1: SECONDARY; n2: PRIMARY; n3: SECONDARY")
	if got := w.sets[setName].Settings["electionTimeoutMillis"]; fmt.Sprint(got) != "2000" {
		t.Errorf("election timeout %v", got)
	}
	if url := c.Properties()[PropURL]; !strings.Contains(url, "replicaSet=rs0") || !strings.Contains(url, "w=majority") || strings.Count(url, ":27017") != 3 {
		t.Errorf("url %s", url)
	}
	if n, err := c.Count(ctx); err != nil || n != 7 {
		t.Errorf("count %d, %v", n, err)
	}
	change, err := c.Join(ctx, nodes[3])
	if err != nil || change.Complete < change.Accepted || change.Accepted <= 0 {
		t.Fatalf("%+v, %v", change, err)
	}
	// The primary leaves: it steps down first.
	if change, err = c.Leave(ctx, nodes[1], database.Graceful); err != nil || change.Complete < change.Accepted || change.Accepted <= 0 {
		t.Fatalf("%+v, %v", change, err)
	}
	expectStates(t, c, "n1: PRIMARY; n3: SECONDARY; n4: SECONDARY")
	if want := []string{"replSetInitiate", "replSetReconfig", "replSetStepDown", "replSetReconfig"}; !slices.Equal(w.seen, want) {
		t.Errorf("commands %q, want %q", w.seen, want)
	}
	if _, err := c.Leave(ctx, nodes[0], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	expectStates(t, c, "n3: PRIMARY; n4: SECONDARY")
	if _, err := c.Leave(ctx, nodes[2], database.Abrupt); !errors.Is(err, database.ErrFixed) {
		t.Errorf("a member needed for the majority was removed as lost: %v", err)
	}
	for what, err := range map[error]error{
		database.ErrMember:    func() error { _, err := c.Join(ctx, nodes[3]); return err }(),
		database.ErrNotMember: func() error { _, err := c.Leave(ctx, nodes[0], database.Graceful); return err }(),
	} {
		if !errors.Is(err, what) {
			t.Errorf("%v, want %v", err, what)
		}
	}
	if err := c.Err(); err != nil {
		t.Errorf("members that left count as failed: %v", err)
	}
}

func testHaltAndRevive(t *testing.T) {
	w := newWorld()
	nodes := fakeHosts(t, w, 3)
	c := startFake(t, w, nodes, nil)
	for _, manner := range []database.Manner{database.Graceful, database.Abrupt} {
		if err := c.Halt(t.Context(), nodes[0], manner); err != nil {
			t.Fatal(err)
		}
		expectStates(t, c, "n1: unreachable; n2: PRIMARY; n3: SECONDARY")
		if err := c.Ready(t.Context()); !errors.Is(err, database.ErrNotReady) {
			t.Errorf("ready without a member: %v", err)
		}
		if err := c.Revive(t.Context(), nodes[0]); err != nil {
			t.Fatal(err)
		}
		if err := c.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// testThreeNodeCluster is CLOUDS' smaller design: a shard, a config server and a mongos on each of three nodes.
func testThreeNodeCluster(t *testing.T) {
	w := newWorld()
	nodes := fakeHosts(t, w, 4)
	c := startFake(t, w, nodes[:3], database.Options{"topology": "sharded"})
	ctx := t.Context()
	expectStates(t, c, "n1: config PRIMARY, shard0 PRIMARY, mongos; n2: config SECONDARY, shard1 PRIMARY, mongos; n3: config SECONDARY, shard2 PRIMARY, mongos")
	members, err := c.Members(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var share float64
	for i, m := range members {
		share += m.Share
		if m.Rows != int64(i+1) {
			t.Errorf("member %+v", m)
		}
	}
	if share < 0.999 || share > 1.001 {
		t.Errorf("the shards own %v of the records", share)
	}
	if !w.sets[configName].Server {
		t.Error("the config servers lack their role")
	}
	if !slices.Contains(w.seen, "shardCollection") {
		t.Error("the collection is not sharded")
	}
	if _, err := c.Leave(ctx, nodes[0], database.Graceful); !errors.Is(err, database.ErrFixed) {
		t.Errorf("a config server was allowed to leave: %v", err)
	}
	if _, err := c.Join(ctx, nodes[3]); err != nil {
		t.Fatal(err)
	}
	if len(w.shards) != 4 || w.shards[3].ID != "shard3" {
		t.Errorf("shards %+v", w.shards)
	}
	if _, err := c.Leave(ctx, nodes[3], database.Abrupt); !errors.Is(err, database.ErrUnsupported) {
		t.Errorf("a shard of one member was removed as lost: %v", err)
	}
	if _, err := c.Leave(ctx, nodes[3], database.Graceful); err != nil {
		t.Fatal(err)
	}
	// The database moves after its last chunk, which the first response does not show.
	moves := slices.DeleteFunc(slices.Clone(w.seen), func(name string) bool { return name != "movePrimary" })
	if len(w.shards) != 3 || len(moves) != 1 || w.drains["shard3"] != 3 {
		t.Errorf("shards %+v, commands %q, drained %v", w.shards, w.seen, w.drains)
	}
	if _, err := c.Join(ctx, nodes[3]); err != nil || w.shards[3].ID != "shard3" {
		t.Errorf("shards %+v after the node returned: %v", w.shards, err)
	}
	if err := errors.Join(c.Ready(ctx), c.Err()); err != nil {
		t.Error(err)
	}
}

// testProductionCluster is CLOUDS' replicated design on three nodes and on nine.
func testProductionCluster(t *testing.T) {
	for _, n := range []int{3, 9} {
		w := newWorld()
		nodes := fakeHosts(t, w, n)
		c := startFake(t, w, nodes, database.Options{"topology": "sharded", "shards": 3, "replicas": 3, "config_servers": 3, "mongos": "n1"})
		if err := c.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		primaries := make(map[string]bool)
		for _, set := range []string{"shard0", "shard1", "shard2"} {
			primary, _, _ := strings.Cut(w.primary(set), ":")
			primaries[primary] = true
			on := make(map[string]bool)
			for _, m := range w.sets[set].Members {
				node, _, _ := strings.Cut(m.Host, ":")
				on[node] = true
			}
			if len(on) != 3 {
				t.Errorf("%d nodes: the members of %s are on %d nodes", n, set, len(on))
			}
		}
		if len(primaries) != 3 {
			t.Errorf("%d nodes: primaries are on %d nodes", n, len(primaries))
		}
		if len(c.Select(func(s *server) bool { return s.role == roleRouter })) != 1 {
			t.Error("not one mongos")
		}
		if _, err := c.Leave(t.Context(), nodes[n-1], database.Graceful); !errors.Is(err, database.ErrFixed) {
			t.Errorf("%d nodes: a member of a shard left: %v", n, err)
		}
	}
}

func testUnknownNode(t *testing.T) {
	nodes := fakeHosts(t, newWorld(), 2)
	_, err := New().Start(t.Context(), database.Env{Nodes: nodes, Control: nodes[0], Options: database.Options{"hidden": "n7"}})
	if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), "unknown data node n7") {
		t.Errorf("%v", err)
	}
}
