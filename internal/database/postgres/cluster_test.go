package postgres

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// startCluster starts a cluster for the test.
func startCluster(t testing.TB, d *Postgres, nodes []host.Host, o database.Options) *cluster {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipe))
	return dbtest.Start(t, d, database.Env{Nodes: nodes, Options: o}).(*cluster)
}

// open opens a client for the test.
func open(t testing.TB, d *Postgres, properties map[string]string, extra ...string) *client {
	t.Helper()
	return dbtest.Open(t, d, properties, extra...).(*client)
}

func record(value string) []load.Field {
	return []load.Field{{Name: "field0", Value: []byte(value)}}
}

// insert retries until the cluster has a primary that accepts it.
func insert(t *testing.T, c *client, key string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := c.Insert(t.Context(), "", key, record("a"))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// The primary is halted in both ways: another takes over, and the first one returns as its standby, with the writes of
// the meantime.
func TestPrimaryHaltsAndReturns(t *testing.T) {
	for _, manner := range []database.Manner{database.Graceful, database.Abrupt} {
		t.Run(manner.String(), func(t *testing.T) {
			d, nodes := New(), testhost.Loopback(t, 3)
			c := startCluster(t, d, nodes, nil)
			ctx := t.Context()
			client := open(t, d, c.Properties())
			insert(t, client, "user1")
			if err := c.Halt(ctx, nodes[0], manner); err != nil {
				t.Fatal(err)
			}
			insert(t, client, "user2")
			members, err := c.Members(ctx)
			if err != nil || members[0].State != "unreachable" || (members[1].State == "primary") == (members[2].State == "primary") {
				t.Errorf("members %+v, %v", members, err)
			}
			if err := c.Ready(ctx); err == nil {
				t.Error("ready without a member")
			}
			if err := c.Revive(ctx, nodes[0]); err != nil {
				t.Fatal(err)
			}
			if err := c.Ready(ctx); err != nil {
				t.Error(err)
			}
			one, err := c.OpenMember(ctx, "n1")
			if err != nil {
				t.Fatal(err)
			}
			defer one.Close()
			if _, err := one.Read(ctx, "", "user2", nil, nil); err != nil {
				t.Errorf("the returned member lacks the missed writes: %v", err)
			}
			var e *load.OpError
			if err := one.Insert(ctx, "", "user3", record("a")); !errors.As(err, &e) || e.Outcome != load.NotDone {
				t.Errorf("a write through a member's own copy: %v", err)
			}
			if err := c.Err(); err != nil {
				t.Errorf("a halted member counts as failed: %v", err)
			}
		})
	}
}

// Every member is halted and revived, the last primary first.
func TestAllHalt(t *testing.T) {
	d, nodes := New(), testhost.Loopback(t, 2)
	c := startCluster(t, d, nodes, nil)
	client := open(t, d, c.Properties())
	insert(t, client, "user1")
	for _, h := range nodes {
		if err := c.Halt(t.Context(), h, database.Graceful); err != nil {
			t.Fatal(err)
		}
	}
	var e *load.OpError
	if err := client.Insert(t.Context(), "", "user2", record("a")); !errors.As(err, &e) {
		t.Errorf("a write without a running member: %v", err)
	}
	if err := client.Insert(t.Context(), "", "user2", record("a")); !errors.As(err, &e) || e.Outcome != load.NotDone || e.Class != classNoPrimary {
		t.Errorf("a write without a running member: %v", err)
	}
	if _, err := c.Leave(t.Context(), nodes[0], database.Graceful); !errors.Is(err, database.ErrFixed) {
		t.Errorf("the only running member was allowed to leave: %v", err)
	}
	for _, h := range []host.Host{nodes[1], nodes[0]} {
		if err := c.Revive(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	insert(t, client, "user3")
	if n, err := c.Count(t.Context()); err != nil || n != 2 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// A member with unusable data is revived.
func TestUnusableDataIsReplaced(t *testing.T) {
	d, nodes := New(), testhost.Loopback(t, 2)
	c := startCluster(t, d, nodes, nil)
	client := open(t, d, c.Properties())
	insert(t, client, "user1")
	if err := c.Halt(t.Context(), nodes[0], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.On("n1").data() + "/global/pg_control"); err != nil {
		t.Fatal(err)
	}
	if err := c.Revive(t.Context(), nodes[0]); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPrimaryIsPlaced(t *testing.T) {
	nodes := testhost.Loopback(t, 2)
	c := startCluster(t, New(), nodes, database.Options{"primary": "n2"})
	if got := c.primary.Load().host.Name(); got != "n2" {
		t.Errorf("%s is the primary", got)
	}
	if _, err := New().Start(t.Context(), database.Env{Nodes: nodes, Options: database.Options{"primary": "n9"}}); !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), "n1, n2") {
		t.Errorf("an unknown node as primary: %v", err)
	}
}

func TestReadsElsewhere(t *testing.T) {
	d, nodes := New(), testhost.Loopback(t, 3)
	c := startCluster(t, d, nodes, database.Options{"synchronous_standby_names": "FIRST 2 (n2, n3)", "synchronous_commit": "remote_apply", "read": "standby"})
	client := open(t, d, c.Properties())
	insert(t, client, "user1")
	if _, err := client.Read(t.Context(), "", "user1", nil, nil); err != nil {
		t.Error(err)
	}
	if client.read == nil || client.read.addr == c.On("n1").addr {
		t.Errorf("reads go to %+v", client.read)
	}
	if err := c.Halt(t.Context(), nodes[1], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Halt(t.Context(), nodes[2], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, err := client.Read(t.Context(), "", "user1", nil, nil)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("without a standby reads do not go to the primary: %v", err)
		}
	}
	if client.read != client.write {
		t.Error("reads of the primary use an extra connection, although the server's connections are limited")
	}
	// No standby remains to confirm a write, so it is in doubt.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var e *load.OpError
	if err := client.Insert(ctx, "", "user2", record("a")); !errors.As(err, &e) || e.Outcome != load.InDoubt || e.Class != "timeout" {
		t.Errorf("a write without a confirming standby: %v", err)
	}
}

func TestSchema(t *testing.T) {
	d := New()
	c := startCluster(t, d, testhost.Loopback(t, 1), nil)
	client := open(t, d, c.Properties(), PropFieldCount, "12")
	if err := client.Insert(t.Context(), "", "user1", []load.Field{{Name: "field11", Value: nil}}); err != nil {
		t.Fatal(err)
	}
	got, err := client.Read(t.Context(), "", "user1", nil, nil)
	if err != nil || len(got) != 1 || got[0].Name != "field11" || len(got[0].Value) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	var e *load.OpError
	if err := client.Update(t.Context(), "", "user1", []load.Field{{Name: "field77"}}); !errors.As(err, &e) || e.Outcome != load.NotDone || e.Class != "sqlstate_42703" {
		t.Errorf("an update of an unknown field: %v", err)
	}
	if _, err := client.Read(t.Context(), "", "user1", nil, nil); err != nil {
		t.Errorf("the connection is unusable after a refusal: %v", err)
	}
}

// Every member that a client was configured with leaves, after others joined.
func TestAllReplaced(t *testing.T) {
	d, nodes := New(), testhost.Loopback(t, 3)
	c := startCluster(t, d, nodes[:1], nil)
	ctx := t.Context()
	client := open(t, d, c.Properties())
	for _, h := range nodes[1:] {
		if _, err := c.Join(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	dir, release, err := d.directories.Acquire(ctx, client.settings, database.ClientSource[*directory]{})
	if err != nil {
		t.Fatal(err)
	}
	dir.lookup(ctx, client.settings)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if known := client.members(); len(known) != 3 {
		t.Errorf("the client's members are %q", known)
	}
	if _, err := c.Leave(ctx, nodes[0], database.Graceful); err != nil {
		t.Fatal(err)
	}
	insert(t, client, "user1")
}
