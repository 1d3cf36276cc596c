package cluster_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/test/testkit"
)

// TestClockJumps makes the wall clocks of two server processes jump by an hour while transactions of dead routers
// hold locks. The locks last for their lease and not for an hour. Locks of a live router stay.
func TestClockJumps(t *testing.T) {
	addrs, all := processes(t, 2)
	clocks := make([]*testkit.WallClock, len(all))
	for i, p := range all {
		clocks[i] = testkit.AttachClock(t, p.cmd.Process.Pid)
	}
	jump := func(by time.Duration) {
		for _, c := range clocks {
			c.Set(t, by)
		}
	}
	c := client.New(addrs[0])
	defer c.Close()
	own := []*client.Client{client.NewOwn(addrs[0]), client.NewOwn(addrs[1])}
	for _, o := range own {
		defer o.Close()
	}
	for _, line := range []string{"mkdir -p /a", "mkdir -p /b", "stat /b", "delegate /b g2", "mkdir -p /b/c"} {
		insist(t, c, line)
	}
	subtree := "/.subtrees/" + only(t, own[1], "ls /.subtrees")
	name := func(n int) string { return fmt.Sprintf("%016x-%08d", time.Now().UnixNano(), n) }
	prepare := func(txn string, lease time.Duration) {
		t.Helper()
		for i, path := range []string{"/a", subtree + "/c"} {
			step := metadata.Step{Verb: metadata.Prepare, Txn: txn, Lease: int64(lease), First: i == 0}
			if i > 0 {
				step.Coordinator = "g1"
			}
			if r := own[i].DoOne(t.Context(), step.Command(path, "")); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}

	jump(2 * time.Hour)
	prepare(name(1), time.Second)
	jump(time.Hour) // back by an hour, or a lease from an hour in the future
	for _, line := range []string{"chmod 700 /a", "chmod 700 /b/c"} {
		insist(t, c, line)
	}

	alive := name(2)
	prepare(alive, time.Hour)
	jump(20 * time.Hour)
	ended := own[0].DoOne(t.Context(), metadata.Step{Verb: metadata.Resolve, Txn: alive, Entry: metadata.AnyEntry}.Command("/", ""))
	if string(ended.Data) != metadata.Pending {
		t.Fatalf("a transaction whose lease has not expired: %q, %v", ended.Data, ended.Err)
	}
	if r := own[0].DoOne(t.Context(), metadata.Step{Verb: metadata.Commit, Txn: alive, Servers: []string{"g2"}}.Command("/",
		"")); r.Err != nil {
		t.Error(r.Err)
	}
}

// only returns the single line that a command prints.
func only(t *testing.T, c *client.Client, line string) string {
	t.Helper()
	command, err := metadata.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	r := c.DoOne(t.Context(), command)
	if r.Err != nil || len(r.Entries) != 1 {
		t.Fatalf("%s: %+v", line, r)
	}
	return strings.TrimSpace(r.Entries[0].Name)
}

// processes starts servers that share a tree.
func processes(t *testing.T, n int) (addrs []string, all []*process) {
	t.Helper()
	var named []string
	for i := range n {
		addrs = append(addrs, testkit.Address(t))
		named = append(named, fmt.Sprintf("g%d=%s", i+1, addrs[i]))
	}
	for i := range n {
		p := &process{t: t, text: fmt.Sprintf("g%d %s %s", i+1, filepath.Join(t.TempDir(), "data"), strings.Join(named, " "))}
		p.start()
		t.Cleanup(func() { p.kill() })
		all = append(all, p)
	}
	return addrs, all
}
