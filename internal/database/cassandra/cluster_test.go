package cassandra

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// The copies of each member are read, for rows with two replicas. A node that is receiving copies is killed, and a
// killed member leaves permanently: its copies are restored from the others.
func TestCopies(t *testing.T) {
	nodes := testhost.Loopback(t, 4)
	c := startCluster(t, nodes[:3], database.Options{"replication_factor": 2, "ring_delay": "3s", "phi_convict_threshold": 5, "write_consistency": "all"})
	client := dbtest.Open(t, New(), c.Properties())
	const rows = 60
	keys := make(map[string]int) // how many members hold it
	for i := range rows {
		key := fmt.Sprint("user", i*i)
		if i%5 == 0 {
			key = fmt.Sprint("schlüssel-für-", i) // bytes that are negative to Java
		}
		keys[key] = 0
		if err := client.Insert(t.Context(), "", key, []load.Field{{Name: "field0", Value: []byte(key)}}); err != nil {
			t.Fatal(err)
		}
	}
	checkTokens(t, c, keys)
	copies := func(nodes []string) {
		t.Helper()
		for key := range keys {
			keys[key] = 0
		}
		for _, n := range nodes {
			copiesOn(t, c, n, keys)
		}
		for key, n := range keys {
			if n != 2 {
				t.Errorf("%s is on %d members, want 2", key, n)
			}
		}
	}
	copies([]string{"n1", "n2", "n3"})

	killJoiner(t, c, nodes[3])
	copies([]string{"n1", "n2", "n3"})

	if _, err := c.Leave(t.Context(), nodes[0], database.Graceful); !errors.Is(err, database.ErrFixed) {
		t.Errorf("the only seed was allowed to leave: %v", err)
	}
	change, err := c.Leave(t.Context(), nodes[2], database.Abrupt)
	if err != nil {
		t.Fatal(err)
	}
	if change.Accepted <= 0 || change.Complete < change.Accepted {
		t.Errorf("times %+v", change)
	}
	copies([]string{"n1", "n2"})
	if n, err := c.Count(t.Context()); err != nil || n != rows {
		t.Errorf("count %d, %v; want %d", n, err, rows)
	}
	if _, err := c.Leave(t.Context(), nodes[1], database.Graceful); !errors.Is(err, database.ErrFixed) {
		t.Errorf("one of two members was allowed to leave with two replicas: %v", err)
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

// killJoiner starts a join and kills the node when data are moving to it.
func killJoiner(t *testing.T, c *cluster, node host.Host) {
	t.Helper()
	report := c.Env.Progress
	defer func() { c.Env.Progress = report }()
	c.Env.Progress = func(step string) {
		report(step)
		if strings.HasPrefix(step, "data is moving to") {
			for _, d := range c.Servers.RunningOn(node.Name()) {
				if err := syscall.Kill(d.PID(), syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if _, err := c.Join(t.Context(), node); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("a join whose node was killed: %v", err)
	}
	if err := errors.Join(c.Ready(t.Context()), c.Err()); err != nil {
		t.Errorf("the cluster changed: %v", err)
	}
}

// copiesOn reads all keys from one member and counts its copies.
func copiesOn(t *testing.T, c *cluster, node string, keys map[string]int) {
	t.Helper()
	member, err := c.OpenMember(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	if err := member.Update(t.Context(), "", "user0", []load.Field{{Name: "field0", Value: []byte("x")}}); !errors.Is(err, load.ErrUnsupported) {
		t.Errorf("a write through one member's copies: %v", err)
	}
	for key := range keys {
		fields, err := member.Read(t.Context(), "", key, nil, nil)
		switch {
		case errors.Is(err, load.ErrNotHeld):
		case err != nil || len(fields) != 1 || string(fields[0].Value) != key:
			t.Errorf("%s on %s: %v, %v", key, node, fields, err)
		default:
			keys[key]++
		}
	}
}

// checkTokens compares Skerry's tokens of keys with Cassandra's.
func checkTokens(t *testing.T, c *cluster, keys map[string]int) {
	t.Helper()
	s, err := c.openSession(c.All()[0], defaultKeyspace)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var key string
	var token int64
	for iter := s.Query("SELECT y_id, token(y_id) FROM usertable").IterContext(t.Context()); iter.Scan(&key, &token); {
		if got := tokenOf(key); got != token {
			t.Errorf("token of %s is %d, want Cassandra's %d", key, got, token)
		}
	}
}

// There is a data centre for each site, and a table with many columns.
func TestDataCenters(t *testing.T) {
	nodes := testhost.Loopback(t, 2)
	c := startCluster(t, nodes, database.Options{"strategy": "network", "read_consistency": "local_one", "write_consistency": "each_quorum"})
	p := c.Properties()
	if p[PropCenter] != "s1" {
		t.Errorf("the client's data centre is %q, want that of its node, s1", p[PropCenter])
	}
	d := New()
	client := dbtest.Open(t, d, p, "fieldcount", "12")
	if err := client.Insert(t.Context(), "", "user1", []load.Field{{Name: "field11", Value: []byte("wide")}}); err != nil {
		t.Fatal(err)
	}
	fields, err := client.Read(t.Context(), "", "user1", nil, nil)
	if err != nil || len(fields) != 1 || string(fields[0].Value) != "wide" {
		t.Errorf("read %v, %v", fields, err)
	}
	for _, node := range []string{"n1", "n2"} {
		member, err := c.OpenMember(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Read(t.Context(), "", "user1", nil, nil); err != nil {
			t.Errorf("the replica on %s: %v", node, err)
		}
		member.Close()
	}
	if _, err := c.Leave(t.Context(), nodes[1], database.Graceful); !errors.Is(err, database.ErrFixed) {
		t.Errorf("the only member of a data centre was allowed to leave: %v", err)
	}
	delete(p, PropSchema)
	p["fieldcount"] = "13"
	if _, err := d.Open(t.Context(), p); !errors.Is(err, ErrSchema) {
		t.Errorf("a table with missing columns: error %v", err)
	}
}

// The disk of the only member becomes full.
func TestFullDisk(t *testing.T) {
	testkit.Need(t, testkit.Root)
	nodes := testhost.Loopback(t, 1)
	dir := nodes[0].Dir() + "/" + Name
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=120m"); err != nil {
		testkit.Lacks(t, testkit.Mounts, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c := startCluster(t, nodes, database.Options{"disk_failure_policy": "die"})
	client := dbtest.Open(t, New(), c.Properties())
	// Incompressible bytes: flushed data take as much space as the log.
	noise := make([]byte, 100_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	value := []load.Field{{Name: "field0", Value: noise}}
	deadline := time.After(5 * time.Minute)
	for i := 0; ; i++ {
		err := client.Insert(t.Context(), "", fmt.Sprint("user", i), value)
		var e *load.OpError
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error without a class: %v", err)
		}
		select {
		case <-c.Failed():
			// The commit log is memory-mapped, so the system ends the process with a signal.
			if err := c.Err(); !strings.Contains(err.Error(), "cassandra on n1") {
				t.Errorf("error %v does not name the member that exited", err)
			}
			if err := c.Ready(t.Context()); err == nil {
				t.Error("the cluster is ready without its only member")
			}
			return
		case <-deadline:
			t.Fatalf("no failure after %d inserts; last error: %v", i, err)
		default:
		}
	}
}

// tryCluster starts a cluster of the default version.
func tryCluster(t testing.TB, nodes []host.Host, o database.Options) (*cluster, error) {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipes()[0]))
	d := New()
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Start(t.Context(), database.Env{
		Nodes: nodes, Control: nodes[0], Installation: in, Options: o,
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		Progress: func(step string) { t.Log(step) },
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c.(*cluster), nil
}

func startCluster(t testing.TB, nodes []host.Host, o database.Options) *cluster {
	t.Helper()
	c, err := tryCluster(t, nodes, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
