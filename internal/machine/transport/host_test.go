package transport

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"skerry/internal/machine"
	"skerry/test/hosttest"
	"skerry/test/testkit"
)

// Nodes of a remote machine pass the contract test of hosts.
func TestHosts(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // others may enter
		t.Fatal(err)
	}
	c := reach(t, here(t, dir))
	p, err := c.Prepare(t.Context(), machine.PartSpec{Lab: fmt.Sprintf("carried-hosts-%d", os.Getpid()), Owned: true})
	if err != nil {
		t.Fatal(err)
	}
	node := machine.NodeSpec{Name: "a", Site: "here", Addr: "10.77.0.1"}
	if err := p.MakeNodes(t.Context(), []machine.NodeSpec{node}); err != nil {
		t.Fatal(err)
	}
	h, err := p.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Host("a"); err != nil || again != h {
		t.Errorf("a second lookup returned another node: %v", err)
	}
	hosttest.Run(t, h)
	addr := netip.MustParseAddr(node.Addr)
	inside, err := p.ContainerHost(machine.Container{Node: "a", Listen: addr, Addr: addr, Ports: map[int]int{1: 2}})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("container", func(t *testing.T) { hosttest.Run(t, inside) })
	// The agent removes what it owns when the connection is closed; the test of the connection checks that.
}
