package testhost

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"

	"skerry/internal/machine/host"
	"skerry/internal/testkit"
)

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
