// Package testhost creates nodes for tests, and finds the leftovers of labs on this machine.
package testhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
)

// node is a node whose processes end with the test.
type node struct {
	host.NamespaceHost
	t testing.TB
}

// nets counts the sets of nodes of this process.
var nets atomic.Uint32

// Loopback creates n nodes n1 to nN at the sites s1 to sN on loopback. Every node of every test has its own address.
// Processes that still run when the test ends are killed.
func Loopback(t testing.TB, n int) []host.Host {
	t.Helper()
	net := nets.Add(1)
	pid := os.Getpid()
	hosts := make([]host.Host, n)
	for i := range hosts {
		addr := fmt.Sprintf("127.%d.%d.%d", 1+(pid>>3)%126, (pid&7)<<5|int(net&31), i+1)
		h, err := host.NewLoopback(fmt.Sprintf("n%d", i+1), fmt.Sprintf("s%d", i+1), addr, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		// Servers that refuse root run as another user, who needs access to the directory.
		if err := os.Chmod(filepath.Dir(h.Dir()), 0o755); err != nil {
			t.Fatal(err)
		}
		hosts[i] = &node{h, t}
	}
	return hosts
}

// Usage returns zero, because loopback nodes share the resources of the machine.
func (h *node) Usage() (host.Usage, error) { return host.Usage{}, nil }
func (h *node) ClockOffset() time.Duration { return 0 }

// Start runs a program.
func (h *node) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := h.NamespaceHost.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	h.t.Cleanup(func() {
		// Processes that a start script leaves behind are in the script's process group.
		if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			h.t.Errorf("ending what %s left on %s: %v", c.Name, h.Name(), err)
		}
		if err := p.Kill(); err != nil {
			h.t.Errorf("ending %s on %s: %v", c.Name, h.Name(), err)
		}
	})
	return p, nil
}

// Bridged creates n nodes n1 to nN at the sites s1 to sN with a network namespace each, for servers that listen on all
// addresses or on the address of a network device. Processes that still run when the test ends are killed. Clients in the
// test process reach the nodes only through Do. The test needs testkit.Root.
//
//	n1 10.255.1.1 ──┐
//	n2 10.255.1.2 ──┼── bridge, in a namespace of its own
//	n3 10.255.1.3 ──┘
func Bridged(t testing.TB, n int) []host.Host {
	t.Helper()
	middle := testkit.Namespace(t)
	if err := middle.Do(func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge"}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return err
		}
		return netlink.LinkSetUp(bridge)
	}); err != nil {
		t.Fatalf("making a bridge: %v", err)
	}
	hosts := make([]host.Host, n)
	for i := range hosts {
		ns := testkit.Namespace(t)
		if err := attachToBridge(middle, ns, fmt.Sprint("port", i)); err != nil {
			t.Fatalf("joining a node to the bridge: %v", err)
		}
		ns.Assign(t, device, fmt.Sprintf("10.255.1.%d/24", i+1))
		dir := t.TempDir()
		// Servers that refuse root run as another user, who needs access to the directory.
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		node := host.NewNode(host.Spec{
			Name: fmt.Sprint("n", i+1), Site: fmt.Sprint("s", i+1), Addr: ns.Addr(), Dir: dir, Netns: ns.Path(),
		})
		t.Cleanup(func() {
			if err := node.Close(); err != nil {
				t.Errorf("ending %s: %v", node.Name(), err)
			}
		})
		hosts[i] = node
	}
	return hosts
}

// device is a node's end of its cable.
const device = "eth0"

// attachToBridge connects a namespace to the bridge with a veth pair.
func attachToBridge(middle, ns *testkit.NS, port string) error {
	return middle.Do(func() error {
		bridge, err := netlink.LinkByName("bridge")
		if err != nil {
			return err
		}
		file, err := os.Open(ns.Path())
		if err != nil {
			return err
		}
		defer file.Close()
		cable := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: port, MasterIndex: bridge.Attrs().Index},
			PeerName:  device, PeerNamespace: netlink.NsFd(int(file.Fd())),
		}
		if err := netlink.LinkAdd(cable); err != nil {
			return err
		}
		return netlink.LinkSetUp(cable)
	})
}

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
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // the process may have ended
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
