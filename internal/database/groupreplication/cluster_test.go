package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// startCluster starts a group with one additional node for clients, for the test.
func startCluster(t testing.TB, n int, o database.Options) (*GroupReplication, *cluster, []host.Host) {
	t.Helper()
	testkit.Need(t, testkit.Root, testkit.Installed(Recipe))
	nodes := testhost.Bridged(t, n+1)
	d := at(&nodes[n])
	return d, dbtest.Start(t, d, database.Env{Nodes: nodes[:n], Control: nodes[n], Options: o}).(*cluster), nodes
}

// The primary is killed during the use of a client, and then a second member, so that the third has no majority.
func TestFailover(t *testing.T) {
	d, c, nodes := startCluster(t, 3, database.Options{"group_replication_member_expel_timeout": 0})
	client := dbtest.Open(t, d, c.Properties())
	rows := int64(0)
	insert := func(ctx context.Context) error {
		err := client.Insert(ctx, "", fmt.Sprint("user", rows+1), []load.Field{{Name: "field0", Value: []byte("v")}})
		if err == nil {
			rows++
		}
		return err
	}
	if err := insert(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Halt(t.Context(), nodes[0], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Servers.Await(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		err := insert(ctx)
		var e *load.OpError
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error without an outcome: %v", err)
		}
		return err
	}); err != nil {
		t.Fatalf("no new primary was found: %v", err)
	}
	for _, n := range nodes[1:3] {
		own, err := d.Driver.OpenMember(t.Context(), c.On(n.Name()), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Servers.Await(ctx, func(ctx context.Context) error {
			n, err := own.Scan(ctx, "", "", 100, nil, nil)
			if err == nil && int64(n) != rows {
				err = fmt.Errorf("%d rows; want %d", n, rows)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		if err := own.Update(ctx, "", "user1", nil); err == nil {
			t.Error("a client of a member's own copy can write")
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := c.Halt(t.Context(), nodes[1], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[:2] { // the remaining member is no majority
		if err := c.Revive(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := c.Count(t.Context()); err != nil || n != rows {
		t.Errorf("count %d, %v; want %d", n, err, rows)
	}
}

// Two of three members write while the third is frozen, and are killed: the remaining one lacks acknowledged writes and
// must not lead.
func TestMinorityIsBehind(t *testing.T) {
	d, c, nodes := startCluster(t, 3, database.Options{"group_replication_member_expel_timeout": 0})
	client := dbtest.Open(t, d, c.Properties())
	record := []load.Field{{Name: "field0", Value: []byte("v")}}
	if err := client.Insert(t.Context(), "", "user1", record); err != nil {
		t.Fatal(err)
	}
	frozen := nodes[2].(*host.Node)
	if err := frozen.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Servers.Await(t.Context(), func(ctx context.Context) error { return c.CheckAgreement(ctx, c.All()[:2]) }); err != nil {
		t.Fatal(err)
	}
	if err := client.Insert(t.Context(), "", "user2", record); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[:2] {
		if err := c.Halt(t.Context(), n, database.Abrupt); err != nil {
			t.Fatal(err)
		}
	}
	if err := frozen.Thaw(); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[:2] {
		if err := c.Revive(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	for _, s := range c.Running() {
		if err := c.Servers.Await(t.Context(), func(ctx context.Context) error {
			n, err := s.Count(ctx, "")
			if err == nil && n != 2 {
				err = fmt.Errorf("%s has %d rows; want 2", s.Host.Name(), n)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

// The configured member leads the group, and an unknown node is rejected.
func TestPrimaryIsPlaced(t *testing.T) {
	_, c, nodes := startCluster(t, 2, database.Options{"primary": "n2"})
	if s, err := c.FindServing(t.Context()); err != nil || s.Host.Name() != "n2" {
		t.Errorf("the primary is %+v, %v", s, err)
	}
	if _, err := New().Start(t.Context(), database.Env{Nodes: nodes, Options: database.Options{"primary": "n9"}}); !errors.Is(err, ErrOption) {
		t.Errorf("an unknown node as primary: %v", err)
	}
}

// Every member is written to, halted and revived.
func TestMultiPrimary(t *testing.T) {
	d, c, nodes := startCluster(t, 2, database.Options{"single_primary": false, "member": "round_robin"})
	for i := range 20 {
		client := dbtest.Open(t, d, c.Properties()) // round robin: the next member
		if err := client.Insert(t.Context(), "", fmt.Sprint("user", i), []load.Field{{Name: "field0", Value: []byte("v")}}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := c.Count(t.Context()); err != nil || n != 20 {
		t.Errorf("count %d, %v; want 20", n, err)
	}
	members, err := c.Members(t.Context())
	if err != nil || len(members) != 2 || members[1].State != "ONLINE, PRIMARY" {
		t.Errorf("members %+v, %v", members, err)
	}
	if err := c.Halt(t.Context(), nodes[1], database.Graceful); err != nil {
		t.Fatal(err)
	}
	client := dbtest.Open(t, d, c.Properties())
	if err := client.Insert(t.Context(), "", "user20", []load.Field{{Name: "field0", Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Halt(t.Context(), nodes[0], database.Graceful); err != nil {
		t.Fatal(err)
	}
	if err := c.Revive(t.Context(), nodes[1]); !errors.Is(err, mysql.ErrBehind) {
		t.Errorf("revived from an outdated member: %v", err)
	}
	for _, n := range nodes[:2] {
		if err := c.Revive(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := c.Count(t.Context()); err != nil || n != 21 {
		t.Errorf("count %d, %v; want 21", n, err)
	}
}
