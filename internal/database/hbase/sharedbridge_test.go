package hbase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/load"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// A bridge writes the archive of its classes, and the next one maps it. No archive is kept of a bridge that was killed,
// or whose cluster was not formed.
func TestSharing(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	in, err := New().Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Symlink(filepath.Join(in.Dir, "lib"), filepath.Join(root, "lib")); err != nil {
		t.Fatal(err)
	}
	javaPath := in.Programs["java"]
	jar, err := localBuildHost.bridgeClasses(t.Context(), javaPath, root, "")
	if err != nil {
		t.Fatal(err)
	}
	path, err := archivePath(t.Context(), files.Local{}, jar, javaPath)
	if err != nil {
		t.Fatal(err)
	}
	node := &spy{Host: testhost.Loopback(t, 1)[0]}
	// begin starts a bridge like a cluster and waits until it responds.
	begin := func(formed bool) *bridge {
		t.Helper()
		c := &cluster{Cluster: daemon.NewCluster[host.Host](Name, database.Env{Nodes: []host.Host{node}, Installation: in}), jar: jar, formed: formed}
		flags, ends := c.archiveSettings(t.Context(), filepath.Join(node.Dir(), sharedClasses))
		run := bridgeCommand(javaPath, classpath(jar, root), "", 64*mib, flags, []property{{"hbase.rootdir", "file://" + root}})
		b, err := startBridgeOn(t.Context(), node, run, node.Dir(), filepath.Join(node.Dir(), "bridge.log"), ends)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (admin{b}).query(t.Context(), "logs"); err != nil {
			t.Fatal(err)
		}
		return b
	}
	end := func(b *bridge) {
		t.Helper()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() bool {
		_, err := os.Stat(path)
		return err == nil
	}

	b := begin(true)
	if err := node.process.Kill(); err != nil {
		t.Fatal(err)
	}
	end(b)
	if kept() {
		t.Fatal("a killed bridge left an archive")
	}

	end(begin(false))
	if kept() {
		t.Fatal("the bridge of a cluster that was not formed left an archive")
	}

	b = begin(true)
	if mapped(t, node.process.PID(), path) {
		t.Error("an archive is mapped before one exists")
	}
	end(b)
	if !kept() {
		testkit.Lacks(t, testkit.ClassArchives, fmt.Errorf("%s was not written", path))
	}

	b = begin(true)
	if !mapped(t, node.process.PID(), path) {
		t.Error("the archive is not mapped")
	}
	end(b)
}

// spy is a host that remembers the last process that it started.
type spy struct {
	host.Host
	process host.Process
}

func (s *spy) Start(ctx context.Context, c host.Command) (host.Process, error) {
	var err error
	s.process, err = s.Host.Start(ctx, c)
	return s.process, err
}

// mapped reports whether a process has a file in its memory.
func mapped(t *testing.T, pid int, path string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), path)
}

// After a cluster is emptied, its clients share a running bridge. They are independent, continue after the table was
// emptied again, and get a separate bridge if they need other settings or the running one has ended.
func TestStanding(t *testing.T) {
	_, _, db := oneNode(t)
	c := db.(*cluster)
	ctx := t.Context()
	empty := func() {
		t.Helper()
		if err := c.Clear(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// opened is a client of a new driver.
	opened := func(more map[string]string) *client {
		t.Helper()
		p := c.Properties()
		maps.Copy(p, more)
		cl, err := New().Open(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cl.Close() })
		return cl.(*client)
	}
	works := func(who string, c *client) {
		t.Helper()
		if err := c.Insert(ctx, table, who, []load.Field{{Name: "field0", Value: []byte(who)}}); err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		got, err := c.Read(ctx, table, who, nil, nil)
		if err != nil || len(got) != 1 || string(got[0].Value) != who {
			t.Fatalf("%s: %v, %v", who, got, err)
		}
	}

	own := opened(nil)
	works("before a bridge is running", own)
	empty()
	at := c.Properties()[PropBridge]
	if !strings.HasSuffix(at, ":16040") {
		t.Fatalf("after the table was cleared: running bridge at %q", at)
	}
	works("its own bridge, other regions", own)
	a, b := opened(nil), opened(nil)
	other := opened(map[string]string{PropTimeout: "5000"})
	works("a", a)
	works("b", b)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	works("b after a was closed", b)
	empty()
	again := opened(nil)
	works("again", again)
	if n := again.Retries(); n != 0 {
		t.Errorf("%d attempts went to regions that are no more", n)
	}

	if err := c.sharedBridge.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(ctx, table, "b", nil, nil); !errors.Is(err, errBridge) {
		t.Errorf("a client of a bridge that has ended: %v", err)
	}
	works("other settings", other)
	works("without a running bridge", opened(map[string]string{PropBridge: at}))
	if at := c.Properties()[PropBridge]; at != "" {
		t.Errorf("an ended bridge is reported at %s", at)
	}
	empty()
	works("reopened", opened(nil))
	if at := c.Properties()[PropBridge]; at == "" {
		t.Error("no bridge is running after the table was cleared again")
	}
}
