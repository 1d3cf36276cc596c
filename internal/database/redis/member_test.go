package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// fill writes rows and returns a check of their number and values.
func fill(t *testing.T, d *Redis, c *cluster, rows int) (check func(want int)) {
	t.Helper()
	client := open(t, d, c.Properties(), PropScan, "true")
	for i := range rows {
		if err := client.Insert(t.Context(), "t", fmt.Sprint("user", i), record(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	return func(want int) {
		t.Helper()
		client, right := open(t, d, c.Properties(), PropScan, "true"), 0
		for i := range rows {
			f, err := client.Read(t.Context(), "t", fmt.Sprint("user", i), nil, nil)
			if err == nil && string(f[0].Value) == strconv.Itoa(i) {
				right++
			} else if !errors.Is(err, load.ErrNotFound) {
				t.Fatalf("record %d: %v, %v", i, f, err)
			}
		}
		if n, err := c.Count(t.Context()); err != nil || right != want || n != int64(want) {
			t.Errorf("%d records are right, count %d, %v; want %d", right, n, err, want)
		}
	}
}

// In a cluster without an append-only file, the data of a member survive a graceful halt, and a kill empties it.
func TestHaltWithoutFile(t *testing.T) {
	d, nodes, ctx := New(), testhost.Loopback(t, 4), t.Context()
	c := startCluster(t, d, nodes[:3], database.Options{"appendonly": false})
	check := fill(t, d, c, 300)
	held, err := c.All()[1].countRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Halt(ctx, nodes[1], database.Graceful); err != nil {
		t.Fatal(err)
	}
	if running(nodes[1]) {
		t.Error("a halted server is still running")
	}
	if err := c.Halt(ctx, nodes[1], database.Abrupt); !errors.Is(err, errHalted) {
		t.Errorf("halting the member again: %v", err)
	}
	if err := c.Ready(ctx); !errors.Is(err, database.ErrNotReady) {
		t.Errorf("ready: %v", err)
	}
	if _, err := c.Count(ctx); !errors.Is(err, database.ErrNotReady) {
		t.Errorf("counting with a third of the slots unavailable: %v", err)
	}
	if members, err := c.Members(ctx); err != nil || len(members) != 3 || members[1].Rows != 0 {
		t.Errorf("members %+v, %v", members, err)
	}
	for what, err := range map[string]error{
		"join": second(c.Join(ctx, nodes[3])), "leave": second(c.Leave(ctx, nodes[0], database.Graceful)),
		"graceful leave of the halted member": second(c.Leave(ctx, nodes[1], database.Graceful)),
	} {
		if !errors.Is(err, database.ErrNotReady) {
			t.Errorf("%s while a member is halted: %v", what, err)
		}
	}
	if err := c.Revive(ctx, nodes[1]); err != nil {
		t.Fatal(err)
	}
	if err := c.Revive(ctx, nodes[1]); !errors.Is(err, errRunning) {
		t.Errorf("reviving the member again: %v", err)
	}
	check(300)
	if err := c.Halt(ctx, nodes[1], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Revive(ctx, nodes[1]); err != nil {
		t.Fatal(err)
	}
	check(300 - int(held))
	if err := c.Err(); err != nil {
		t.Errorf("a halt counts as a failure: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// A master without replicas is lost permanently: the others take its slots, and its data are lost. Of three masters
// none may leave.
func TestLostMaster(t *testing.T) {
	d, nodes, ctx := New(), testhost.Loopback(t, 4), t.Context()
	c := startCluster(t, d, nodes, nil)
	check := fill(t, d, c, 300)
	held, err := c.All()[2].countRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	change, err := c.Leave(ctx, nodes[2], database.Abrupt)
	if err != nil {
		t.Fatal(err)
	}
	if change.Accepted <= 0 || change.Complete < change.Accepted || running(nodes[2]) {
		t.Errorf("%+v", change)
	}
	check(300 - int(held))
	if _, err := c.Leave(ctx, nodes[1], database.Abrupt); !errors.Is(err, database.ErrFixed) {
		t.Errorf("one of three masters was allowed to leave: %v", err)
	}
	if _, err := c.Join(ctx, nodes[2]); err != nil {
		t.Fatal(err)
	}
	check(300 - int(held))
}

// A member is down while another leaves permanently. When it returns, it does not know that one any more.
func TestRevivedMemberForgetsDepartedNode(t *testing.T) {
	d, nodes, ctx := New(), testhost.Loopback(t, 6), t.Context()
	c := startCluster(t, d, nodes, database.Options{"replicas": 1})
	check := fill(t, d, c, 100)
	if err := c.Halt(ctx, nodes[5], database.Graceful); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leave(ctx, nodes[4], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Revive(ctx, nodes[5]); err != nil {
		t.Fatal(err)
	}
	check(100)
}

// Masters and replicas of three masters with one replica each are halted and removed in all ways: no row is lost.
func TestReplicasJoinAndLeave(t *testing.T) {
	replicasComeAndGo(t, New(), testkit.Installed(Recipe))
}

func replicasComeAndGo(t *testing.T, d *Redis, need testkit.Feature) {
	testkit.Need(t, need)
	nodes, ctx := testhost.Loopback(t, 6), t.Context()
	c := startCluster(t, d, nodes, database.Options{"replicas": 1, "cluster_node_timeout": "1s", "wait": 1})
	check := fill(t, d, c, 200)
	state := func(node int, want string) {
		t.Helper()
		members, err := c.Members(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if m.Node == nodes[node].Name() && m.State != want {
				t.Errorf("%s is %s, want %s", m.Node, m.State, want)
			}
		}
	}
	master := 0
	replica := func(of int) int {
		id, err := c.On(nodes[of].Name()).admin.ClusterMyID(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range nodes {
			if m := c.On(h.Name()); m != nil {
				if v, err := m.readView(ctx); err == nil && v.self.master == id {
					return i
				}
			}
		}
		t.Fatalf("%s has no replica", nodes[of].Name())
		return 0
	}

	heir := replica(master)
	if _, err := c.Leave(ctx, nodes[master], database.Graceful); err != nil {
		t.Fatal(err)
	}
	state(heir, "master")
	check(200)
	if _, err := c.Join(ctx, nodes[master]); err != nil {
		t.Fatal(err)
	}
	state(master, "slave")

	// It has its own copy by now, and can report the content.
	reader, err := c.OpenMember(ctx, nodes[master].Name())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	here := 0
	for i := range 200 {
		f, err := reader.Read(ctx, "t", fmt.Sprint("user", i), nil, nil)
		switch {
		case err == nil && string(f[0].Value) == strconv.Itoa(i):
			here++
		case !errors.Is(err, load.ErrNotHeld):
			t.Fatalf("record %d: %v, %v", i, f, err)
		}
	}
	scanned, err := reader.Scan(ctx, "t", "", 1000, nil, nil)
	if err != nil || here < 40 || scanned != here {
		t.Errorf("the replica has %d of 200 records, a scan returned %d, %v", here, scanned, err)
	}
	if err := reader.Update(ctx, "t", "user1", record("x")); !errors.Is(err, load.ErrUnsupported) {
		t.Errorf("a write through a member's own copy: %v", err)
	}

	// The master is killed, its replica takes over, and it returns as a replica.
	if err := c.Halt(ctx, nodes[heir], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	// The slots have a master again, and every member knows it.
	if err := c.Servers.Await(waiting, func(ctx context.Context) error {
		views, err := c.readViews(ctx)
		for _, v := range views {
			if v.state != "ok" {
				err = errors.Join(err, fmt.Errorf("%s reports the cluster state %s", v.host.Name(), v.state))
			}
		}
		return errors.Join(err, second(c.masterViews(ctx)))
	}); err != nil {
		t.Fatal(err)
	}
	check(200)
	if err := c.Revive(ctx, nodes[heir]); err != nil {
		t.Fatal(err)
	}
	state(heir, "slave")

	// A replica and then a master are lost permanently.
	if _, err := c.Leave(ctx, nodes[heir], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Join(ctx, nodes[heir]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leave(ctx, nodes[master], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	state(heir, "master")
	check(200)
}

// Writes acknowledged by too few replicas are in doubt.
func TestWriteWaitsForReplicas(t *testing.T) {
	d, nodes, ctx := New(), testhost.Loopback(t, 6), t.Context()
	c := startCluster(t, d, nodes, database.Options{"replicas": 1, "wait": 1})
	client := open(t, d, c.Properties())
	if err := client.Insert(ctx, "t", "user1", record("a")); err != nil {
		t.Fatal(err)
	}
	for _, h := range nodes[3:] {
		if err := c.Halt(ctx, h, database.Abrupt); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := client.Update(short, "t", "user1", record("b"))
	var e *load.OpError
	if !errors.As(err, &e) || e.Outcome != load.InDoubt {
		t.Errorf("a write without a replica: %v", err)
	}
}

// A fourth master joins three with replicas.
func TestJoinAsMaster(t *testing.T) {
	joinAsMaster(t, New(), testkit.Installed(Recipe), rebalancePipelined)
}

// joinAsMaster lets a master join masters with replicas, and leave again. The server's own mover reports no bytes.
func joinAsMaster(t *testing.T, d *Redis, need testkit.Feature, rebalance string) {
	testkit.Need(t, need)
	nodes, ctx := testhost.Loopback(t, 7), t.Context()
	c := startCluster(t, d, nodes[:6], database.Options{"replicas": 1, "rebalance": rebalance})
	check := fill(t, d, c, 200)
	change, err := c.Join(ctx, nodes[6])
	if err != nil {
		t.Fatal(err)
	}
	members, err := c.Members(ctx)
	if err != nil || members[6].State != "master" || members[6].Share < 0.24 || (change.Bytes == 0) != (rebalance == rebalanceNative) {
		t.Fatalf("%+v, %+v, %v", members[6], change, err)
	}
	check(200)
	if _, err := c.Leave(ctx, nodes[6], database.Graceful); err != nil {
		t.Fatal(err)
	}
	check(200)
}

// A member that is queried alone reports records of other members as absent, and never fetches them.
func TestOpenMemberReadsOwnCopy(t *testing.T) {
	d, nodes, ctx := New(), testhost.Loopback(t, 3), t.Context()
	c := startCluster(t, d, nodes, nil)
	fill(t, d, c, 100)
	const passes = 2
	here := 0
	for _, h := range nodes {
		reader, err := c.OpenMember(ctx, h.Name())
		if err != nil {
			t.Fatal(err)
		}
		for i := range passes * 100 {
			_, err := reader.Read(ctx, "t", fmt.Sprint("user", i%100), nil, nil)
			switch {
			case err == nil:
				here++
			case !errors.Is(err, load.ErrNotHeld):
				t.Fatal(err)
			}
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
	if here != passes*100 {
		t.Errorf("read %d times, the members have %d of 100 records", passes, here)
	}
}
