// Package nethost makes nodes for tests that need no lab but a network namespace each: for
// servers that listen on all addresses, or only on one that a network device has. A bridge
// joins them.
//
//	n1 10.255.1.1 ──┐
//	n2 10.255.1.2 ──┼── bridge, in a namespace of its own
//	n3 10.255.1.3 ──┘
//
// Clients that run in the test's own process reach the nodes through Do alone.
package nethost

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"

	"skerry/internal/machine/host"
	"skerry/internal/testkit"
)

// New makes n nodes, n1 to nN, each at a site of its own, s1 to sN. What they start that
// still runs when the test ends is killed then. The test needs testkit.Root.
func New(t testing.TB, n int) []host.Host {
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
		// Servers that refuse root run as another user, who must get there.
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

// attachToBridge joins a namespace to the bridge.
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
