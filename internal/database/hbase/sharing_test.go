package hbase

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skerry/internal/testkit"
	"skerry/internal/testkit/loophost"
)

// TestSharing lets a bridge write the archive of its classes; the next one maps it. What one
// leaves that was killed is not kept.
func TestSharing(t *testing.T) {
	testkit.Need(t, testkit.HBase)
	in, err := New().Find("")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Symlink(filepath.Join(in.Dir, "lib"), filepath.Join(root, "lib")); err != nil {
		t.Fatal(err)
	}
	javaPath := in.Programs["java"]
	jar, err := bridgeClasses(t.Context(), javaPath, root, "")
	if err != nil {
		t.Fatal(err)
	}
	path, err := archive(jar, javaPath)
	if err != nil {
		t.Fatal(err)
	}
	node := loophost.New(t, 1)[0]
	// begin starts a bridge as a cluster does and waits until it answers.
	begin := func() (*bridge, int) {
		t.Helper()
		flags, ends := sharing(jar, javaPath, filepath.Join(node.Dir(), sharedClasses), slog.New(slog.DiscardHandler))
		run := bridgeCommand(javaPath, classpath(jar, root), "", 64*mib, flags, []property{{"hbase.rootdir", "file://" + root}})
		b, err := bridgeOn(t.Context(), node, run, node.Dir(), filepath.Join(node.Dir(), "bridge.log"), ends)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (admin{b}).ask(t.Context(), "logs"); err != nil {
			t.Fatal(err)
		}
		return b, processWith(t, classpath(jar, root))
	}

	b, pid := begin()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatalf("after a bridge that was killed, the archive: %v", err)
	}

	b, pid = begin()
	if mapped(t, pid, path) {
		t.Error("an archive is mapped before there is one")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		testkit.Lacks(t, testkit.ClassArchives, err)
	}

	b, pid = begin()
	if !mapped(t, pid, path) {
		t.Error("the archive is not mapped")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// processWith is the process that has an argument.
func processWith(t *testing.T, argument string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		line, _ := os.ReadFile(f) // it may have ended
		if strings.Contains(string(line), "\x00"+argument+"\x00") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("no process has the argument %s", argument)
	return 0
}

// mapped tells whether a process has a file in its memory.
func mapped(t *testing.T, pid int, path string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), path)
}
