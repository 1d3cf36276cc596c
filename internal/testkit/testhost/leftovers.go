package testhost

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

// NetnsDir is the directory of namespaces that `ip netns` lists.
const NetnsDir = "/run/netns"

// FindLeftovers returns the leftovers of labs whose names begin with name, or below dir: processes, mounts, visible namespaces,
// control groups and files.
func FindLeftovers(t testing.TB, name, dir string) []string {
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

// patience is how long a killed process may remain visible.
const patience = 10 * time.Second

// CheckLeftovers fails the test if FindLeftovers still reports leftovers after a grace period.
func CheckLeftovers(t testing.TB, name, dir string) {
	t.Helper()
	left := FindLeftovers(t, name, dir)
	for deadline := time.Now().Add(patience); len(left) > 0 && time.Now().Before(deadline); {
		left = FindLeftovers(t, name, dir)
	}
	for _, l := range left {
		t.Errorf("left: %s", l)
	}
}
