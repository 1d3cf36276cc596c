// Package traces finds what labs leave on this machine, for tests that want nothing to be left.
package traces

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/host"
)

// NetnsDir is where `ip netns` looks for namespaces.
const NetnsDir = "/run/netns"

// Find lists what is on the machine of labs whose names begin with name, or below dir:
// processes, mounts, shown namespaces, control groups, files.
func Find(t testing.TB, name, dir string) []string {
	t.Helper()
	found := processes(t, name)
	mounts, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if at := strings.Fields(line)[4]; strings.HasPrefix(at, dir+"/") {
			found = append(found, "mount "+at)
		}
	}
	for _, pattern := range []string{
		NetnsDir + "/skerry-" + name + "*",
		"/sys/fs/cgroup/skerry/" + name + "*", "/sys/fs/cgroup/*/skerry/" + name + "*",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && path != dir {
			found = append(found, "file "+path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func processes(t testing.TB, name string) (found []string) {
	t.Helper()
	pids, err := procfs.ListPIDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if strings.HasPrefix(procfs.ReadEnv(pid, host.LabVariable), name) {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
			found = append(found, fmt.Sprintf("process %d %s", pid, strings.ReplaceAll(string(text), "\x00", " ")))
		}
	}
	return found
}

// patience is how long what was ended may still show.
const patience = 10 * time.Second

// Check fails the test when anything is left of labs whose names begin with name, or below dir.
func Check(t testing.TB, name, dir string) {
	t.Helper()
	left := Find(t, name, dir)
	// A process that was killed shows for a moment more.
	for deadline := time.Now().Add(patience); len(left) > 0 && time.Now().Before(deadline); {
		left = Find(t, name, dir)
	}
	for _, l := range left {
		t.Errorf("left: %s", l)
	}
}
