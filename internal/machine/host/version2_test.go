package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/test/testkit"
)

// useAsAsked is this program as a process that uses up the resources of its node.
func useAsAsked(what string) {
	switch what {
	case "cpu": // 0.2 s of CPU time
		for used := (syscall.Rusage{}); used.Utime.Nano()+used.Stime.Nano() < int64(200*time.Millisecond); {
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	case "memory":
		block := make([]byte, 200<<20)
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = 1
		}
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	fmt.Print(string(text), err)
}

// version2 is a machine with limits of CPU and memory by control groups of version 2, as on current distributions. If
// none are mounted, as on the machine of TestHostInVM, the test mounts them.
func version2(t *testing.T) *cgroup.Tree {
	t.Helper()
	testkit.Need(t, testkit.Root)
	const mount = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err != nil {
		if entries, err := os.ReadDir(mount); err != nil || len(entries) > 0 {
			testkit.Lacks(t, testkit.Cgroup2, errors.New("this machine has version 1"))
		}
		if err := unix.Mount("cgroup2", mount, "cgroup2", 0, ""); err != nil {
			testkit.Lacks(t, testkit.Cgroup2, err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(mount, 0); err != nil {
				t.Error(err)
			}
		})
	}
	tree, err := cgroup.Open()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestCgroupV2LimitsNodes(t *testing.T) {
	tree := version2(t)
	lab := fmt.Sprintf("version2-test-%d", os.Getpid())
	dir := t.TempDir()
	s := Spec{
		Name: "limited", Dir: dir, Netns: filepath.Join(dir, "ns"), Tag: lab,
		CPU: 0.2, Memory: 64 << 20, Group: tree.Group(lab + "/limited"),
	}
	if err := netns.OnNewThread(func() error { return netns.Create(s.Netns) }); err != nil {
		t.Fatal(err)
	}
	n := NewNode(s)
	t.Cleanup(func() {
		for _, err := range []error{n.Close(), tree.Group(lab).Remove(), unix.Unmount(s.Netns, unix.MNT_DETACH)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	use := func(what string) (string, error) {
		var out bytes.Buffer
		p, err := n.Start(t.Context(), Command{Name: what, Path: "/proc/self/exe", Env: []string{"SKERRY_TEST_USE=" + what}, Stdout: &out, Stderr: &out})
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		return out.String(), p.Err()
	}
	out, err := use("cpu")
	if err != nil || !strings.Contains(out, "/skerry/"+lab+"/limited") {
		t.Errorf("%v: the process was in the control group\n%s", err, out)
	}
	u, err := n.Usage()
	if err != nil || u.CPU < 100*time.Millisecond || u.Throttled < u.CPU/2 {
		t.Errorf("usage %+v, %v; want it throttled", u, err)
	}
	if out, err := use("memory"); err == nil {
		t.Errorf("the process got 200 MB with a limit of 64 MiB\n%s", out)
	}
}
