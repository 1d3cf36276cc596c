package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/load"
	"skerry/test/testkit/testhost"
)

func TestClusterOfFive(t *testing.T) {
	began := time.Now()
	c := startCluster(t, New(), testhost.Loopback(t, 5), nil)
	t.Logf("ready after %v", time.Since(began))
	members, err := c.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leaders := 0
	for _, m := range members {
		if m.State == "leader" {
			leaders++
		} else if m.State != "follower" {
			t.Errorf("member %+v", m)
		}
		if m.Share != 1 {
			t.Errorf("member %+v lacks records", m)
		}
	}
	if len(members) != 5 || leaders != 1 {
		t.Errorf("%d members, %d leaders", len(members), leaders)
	}
}

func TestRecords(t *testing.T) {
	d := New()
	c := startCluster(t, d, testhost.Loopback(t, 3), nil)
	ctx := t.Context()
	for _, read := range []string{readLinearizable, readSerializable} {
		if err := c.Clear(ctx); err != nil {
			t.Fatal(err)
		}
		client := open(t, d, c.Properties(), PropRead, read, PropRoute, routeListed)
		for i := range 20 {
			if err := client.Insert(ctx, "usertable", fmt.Sprintf("user%02d", i), record("a", "b", strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Update(ctx, "usertable", "user07", []load.Field{{Name: "field1", Value: []byte("new")}}); err != nil {
			t.Fatal(err)
		}
		got, err := client.Read(ctx, "usertable", "user07", nil, nil)
		if err != nil || text(got) != "field0=a field1=new field2=7" {
			t.Errorf("%s read %q, %v", read, text(got), err)
		}
		if got, err = client.Read(ctx, "usertable", "user07", []string{"field2"}, nil); err != nil || text(got) != "field2=7" {
			t.Errorf("%s read %q, %v", read, text(got), err)
		}
		var keys []string
		n, err := client.Scan(ctx, "usertable", "user07", 3, []string{"field0"}, func(key string, f []load.Field) {
			keys = append(keys, key+":"+text(f))
		})
		if want := "user07:field0=a user08:field0=a user09:field0=a"; err != nil || n != 3 || strings.Join(keys, " ") != want {
			t.Errorf("%s scan %d %q, %v", read, n, keys, err)
		}
		if n, err := client.Scan(ctx, "usertable", "user18", 10, nil, nil); err != nil || n != 2 {
			t.Errorf("%s scan over the end: %d, %v", read, n, err)
		}
		if err := client.Delete(ctx, "usertable", "user07"); err != nil {
			t.Error(err)
		}
		for what, err := range map[string]error{
			"delete": client.Delete(ctx, "usertable", "user07"),
			"update": client.Update(ctx, "usertable", "user07", record("x")),
			"read":   func() error { _, err := client.Read(ctx, "usertable", "user07", nil, nil); return err }(),
		} {
			if !errors.Is(err, load.ErrNotFound) {
				t.Errorf("%s of a missing record: %v", what, err)
			}
		}
		for name, count := range map[string]func() (int64, error){
			"cluster": func() (int64, error) { return c.Count(ctx) },
			"client":  func() (int64, error) { return client.Count(ctx, "usertable") },
		} {
			if n, err := count(); err != nil || n != 19 {
				t.Errorf("the %s counts %d, %v; want 19", name, n, err)
			}
		}
		if r := client.Retries(); r != 0 {
			t.Errorf("%d retries", r)
		}
	}
}

// Many clients update their own fields of one record: no update may be lost.
// A table is emptied twice in a row. Afterwards no old version can be read, because etcd would keep all of them in
// memory.
func TestClearForgets(t *testing.T) {
	d := New()
	c := startCluster(t, d, testhost.Loopback(t, 1), nil)
	ctx := t.Context()
	client := open(t, d, c.Properties())
	if err := client.Insert(ctx, "usertable", "user1", record("a")); err != nil {
		t.Fatal(err)
	}
	m, err := c.findServing(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := m.admin.Get(ctx, recordKey("usertable", "user1"))
	if err != nil || len(before.Kvs) != 1 {
		t.Fatalf("read %v, %v", before, err)
	}
	for range 2 {
		if err := c.Clear(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.admin.Get(ctx, recordKey("usertable", "user1"), clientv3.WithRev(before.Header.Revision)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("reading the version before the table was cleared: %v", err)
	}
}

func TestConcurrentUpdates(t *testing.T) {
	const clients, updates = 6, 10
	d := New()
	c := startCluster(t, d, testhost.Loopback(t, 3), nil)
	first := open(t, d, c.Properties())
	if err := first.Insert(t.Context(), "", "user1", record("")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range clients {
		client := open(t, d, c.Properties(), PropRoute, routeSpread)
		all.Go(func() {
			for n := 1; n <= updates; n++ {
				f := []load.Field{{Name: fmt.Sprint("own", i), Value: []byte(strconv.Itoa(n))}}
				for {
					err := client.Update(t.Context(), "", "user1", f)
					var e *load.OpError
					if errors.As(err, &e) && e.Class == classConflict {
						continue // not applied
					}
					if err != nil {
						t.Error(err)
					}
					break
				}
			}
		})
	}
	all.Wait()
	got, err := first.Read(t.Context(), "", "user1", nil, nil)
	if err != nil || len(got) != 1+clients {
		t.Fatalf("%q, %v", text(got), err)
	}
	for _, f := range got[1:] {
		if string(f.Value) != strconv.Itoa(updates) {
			t.Errorf("%s is %q: an update was lost", f.Name, f.Value)
		}
	}
}

func TestResize(t *testing.T) {
	d, nodes := New(), testhost.Loopback(t, 4)
	c := startCluster(t, d, nodes[:3], nil)
	ctx := t.Context()
	client := open(t, d, c.Properties())
	for i := range 50 {
		if err := client.Insert(ctx, "", fmt.Sprint("user", i), record("a")); err != nil {
			t.Fatal(err)
		}
	}
	change, err := c.Join(ctx, nodes[3])
	if err != nil || change.Accepted <= 0 || change.Complete < change.Accepted {
		t.Fatalf("%+v, %v", change, err)
	}
	t.Logf("join accepted after %v, complete after %v", change.Accepted, change.Complete)
	if _, err := c.Join(ctx, nodes[3]); !errors.Is(err, database.ErrMember) {
		t.Errorf("a second join: %v", err)
	}
	one, err := c.OpenMember(ctx, "n4")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := one.Read(ctx, "", "user7", nil, nil); err != nil || text(got) != "field0=a" {
		t.Errorf("the new member has %q, %v", text(got), err)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	// The leader leaves, then another member is lost.
	leader := leaderOf(t, c)
	change, err = c.Leave(ctx, leader.host, database.Graceful)
	if err != nil || change.Accepted <= 0 || change.Complete < change.Accepted {
		t.Fatalf("%+v, %v", change, err)
	}
	t.Logf("leave accepted after %v, complete after %v", change.Accepted, change.Complete)
	if _, err := c.Leave(ctx, leader.host, database.Graceful); !errors.Is(err, database.ErrNotMember) {
		t.Errorf("a second leave: %v", err)
	}
	lost := c.All()[0]
	if _, err = c.Leave(ctx, lost.host, database.Abrupt); err != nil {
		t.Fatal(err)
	}
	if _, err = c.Leave(ctx, c.All()[0].host, database.Abrupt); !errors.Is(err, database.ErrFixed) {
		t.Errorf("a member needed for the majority was removed as lost: %v", err)
	}
	if n, err := c.Count(ctx); err != nil || n != 50 {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := c.Err(); err != nil {
		t.Errorf("members that left count as failed: %v", err)
	}
	if _, err := client.Read(ctx, "", "user7", nil, nil); err != nil {
		if _, err = client.Read(ctx, "", "user7", nil, nil); err != nil { // the first may be in doubt
			t.Errorf("the client does not find the remaining members: %v", err)
		}
	}
}

// TestUndoJoin removes a member that already has a vote. For 5 s after it connected, etcd refuses to remove it as long as
// the others have not found that its process was killed; if it stays listed, etcd refuses every later member.
func TestUndoJoin(t *testing.T) {
	nodes := testhost.Loopback(t, 3)
	c := startCluster(t, New(), nodes[:2], nil)
	ctx := t.Context()
	for range 3 {
		m, err := c.addMember(nodes[2])
		if err != nil {
			t.Fatal(err)
		}
		entry := c.All()[0]
		peers, err := c.registerMember(ctx, entry, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.startJoined(ctx, entry, m, peers); err != nil {
			t.Fatal(err)
		}
		if err := c.undoJoin(ctx, m); err != nil {
			t.Fatal(err)
		}
		there, err := findListed(ctx, entry, c.options.peerURL(nodes[2]))
		if err != nil || there != nil {
			t.Fatalf("the cluster lists %v after the undo, %v", there, err)
		}
	}
}

func TestHaltAndRevive(t *testing.T) {
	for _, manner := range []database.Manner{database.Graceful, database.Abrupt} {
		t.Run(manner.String(), func(t *testing.T) {
			d, nodes := New(), testhost.Loopback(t, 3)
			c := startCluster(t, d, nodes, nil)
			ctx := t.Context()
			client := open(t, d, c.Properties(), PropRoute, routeListed)
			write := func(key string) {
				t.Helper()
				for deadline := time.Now().Add(20 * time.Second); ; {
					err := client.Insert(ctx, "", key, record("a"))
					if err == nil {
						return
					}
					if time.Now().After(deadline) {
						t.Fatal(err)
					}
				}
			}
			write("user1")
			if err := c.Halt(ctx, nodes[0], manner); err != nil {
				t.Fatal(err)
			}
			write("user2")
			if err := c.Ready(ctx); err == nil {
				t.Error("ready without a member")
			}
			members, err := c.Members(ctx)
			if err != nil || members[0].State != "unreachable" || members[1].Rows != 2 {
				t.Errorf("members %+v, %v", members, err)
			}
			if _, err := c.Leave(ctx, nodes[1], database.Graceful); !errors.Is(err, database.ErrFixed) {
				t.Errorf("a member needed for the majority was allowed to leave: %v", err)
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
				t.Errorf("the revived member lacks the missed writes: %v", err)
			}
			if err := c.Err(); err != nil {
				t.Errorf("a halted member counts as failed: %v", err)
			}
		})
	}
}

// The outcome of operations when most members are down.
func TestNoMajority(t *testing.T) {
	d, nodes := New(), testhost.Loopback(t, 3)
	c := startCluster(t, d, nodes, nil)
	client := open(t, d, c.Properties(), PropRoute, routeListed)
	if err := client.Insert(t.Context(), "", "user1", record("a")); err != nil {
		t.Fatal(err)
	}
	for _, h := range nodes[1:] {
		if err := c.Halt(t.Context(), h, database.Abrupt); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var e *load.OpError
	if err := client.Insert(ctx, "", "user2", record("a")); !errors.As(err, &e) || e.Outcome != load.InDoubt || e.Class != "timeout" {
		t.Errorf("a write without a majority: %v", err)
	}
	local := open(t, d, map[string]string{PropEndpoints: c.On("n1").addr, PropRead: readSerializable})
	if got, err := local.Read(t.Context(), "", "user1", nil, nil); err != nil || text(got) != "field0=a" {
		t.Errorf("a serializable read without a majority: %q, %v", text(got), err)
	}
	strict := open(t, d, map[string]string{PropEndpoints: c.On("n1").addr, PropRequireLeader: "true"})
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := strict.Insert(t.Context(), "", "user3", record("a"))
		if errors.As(err, &e) && e.Outcome == load.NotDone && e.Class == classNoLeader {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a write that requires a leader: %v", err)
		}
	}
	if _, err := d.Open(t.Context(), map[string]string{PropEndpoints: c.On("n2").addr}); !errors.As(err, &e) ||
		e.Outcome != load.NotDone || e.Class != "refused" {
		t.Errorf("opening without a listener: %v", err)
	}
}

func TestKilledMember(t *testing.T) {
	c := startCluster(t, New(), testhost.Loopback(t, 3), nil)
	if err := syscall.Kill(c.All()[1].Server().PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("the failure was not reported")
	}
	if err := c.Err(); !errors.Is(err, daemon.ErrEnded) || !strings.Contains(err.Error(), "n2") {
		t.Errorf("error %v does not name the node", err)
	}
}

func TestPortTaken(t *testing.T) {
	nodes := testhost.Loopback(t, 3)
	l, err := net.Listen("tcp4", nodes[1].Addr()+":2380")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err = tryCluster(t, New(), nodes, nil); !errors.Is(err, daemon.ErrPortTaken) || !strings.Contains(err.Error(), "n2") {
		t.Errorf("error %v does not name the node whose port is in use", err)
	}
}

// Every member that a client was configured with leaves, after others joined.
func TestAllReplaced(t *testing.T) {
	d, nodes := New(), testhost.Loopback(t, 4)
	c := startCluster(t, d, nodes[:2], nil)
	ctx := t.Context()
	client := open(t, d, c.Properties())
	for _, h := range nodes[2:] {
		if _, err := c.Join(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	client.learnMembers(client.current)
	client.learning.Wait()
	for _, h := range nodes[:2] {
		if _, err := c.Leave(ctx, h, database.Graceful); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := client.Insert(ctx, "", "user1", record("a"))
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
