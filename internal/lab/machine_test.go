package lab

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"skerry/internal/host"
	"skerry/internal/procfs"
)

// traces lists what is on the machine of labs whose names begin with name, or below dir:
// processes, mounts, shown namespaces, control groups, files.
func traces(t *testing.T, name, dir string) []string {
	t.Helper()
	var found []string
	pids, err := procfs.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if strings.HasPrefix(procfs.Environ(pid, host.LabVariable), name) {
			found = append(found, "process "+cmdline(pid))
		}
	}
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
		shownDir + "/skerry-" + name + "*",
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

func cmdline(pid int) string {
	text, _ := os.ReadFile(filepath.Join("/proc", itoa(pid), "cmdline"))
	return itoa(pid) + " " + strings.ReplaceAll(string(text), "\x00", " ")
}

// noTraces fails the test when anything is left of its labs.
func noTraces(t *testing.T, c Config) {
	t.Helper()
	dir := filepath.Dir(c.StateDir)
	left := traces(t, c.Name, dir)
	// A process that was killed shows for a moment more.
	for deadline := time.Now().Add(10 * time.Second); len(left) > 0 && time.Now().Before(deadline); {
		left = traces(t, c.Name, dir)
	}
	for _, l := range left {
		t.Errorf("left: %s", l)
	}
}

// network is what the machine's own network namespace holds.
func network(t *testing.T) []string {
	t.Helper()
	var all []string
	links, errLinks := netlink.LinkList()
	addrs, errAddrs := netlink.AddrList(nil, netlink.FAMILY_ALL)
	routes, errRoutes := netlink.RouteList(nil, netlink.FAMILY_ALL)
	rules, errRules := netlink.RuleList(netlink.FAMILY_ALL)
	for _, err := range []error{errLinks, errAddrs, errRoutes, errRules} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range links {
		all = append(all, "device "+l.Attrs().Name)
	}
	for _, a := range addrs {
		all = append(all, "address "+a.String())
	}
	for _, r := range routes {
		all = append(all, "route "+r.String())
	}
	for _, r := range rules {
		all = append(all, "rule "+r.String())
	}
	slices.Sort(all)
	return all
}

func sameNetwork(t *testing.T, before []string, when string) {
	t.Helper()
	if diff := cmp.Diff(before, network(t)); diff != "" {
		t.Errorf("%s the machine's own network differs:\n%s", when, diff)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
