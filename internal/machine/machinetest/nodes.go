package machinetest

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// shell runs a script on a node and returns its output.
func shell(t *testing.T, p machine.Part, node, script string) (string, error) {
	t.Helper()
	h, err := p.Host(node)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	ran, err := h.Start(t.Context(), host.Command{Name: "shell", Path: "/bin/sh", Args: []string{"-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-ran.Done()
	return strings.TrimSpace(out.String()), ran.Err()
}

// A node has a name, a directory and a network, and Facts describes them.
func testNodes(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	out, err := shell(t, p, nodeB, "hostname; echo kept >$HOME/x; cat x; ls /proc/sys/net/ipv4/conf | grep -c "+deviceOf)
	if err != nil || out != nodeB+"\nkept\n1" {
		t.Errorf("%q, %v", out, err)
	}
	f := p.Facts()
	var got []string
	for _, n := range f.Nodes {
		got = append(got, n.Name+" "+n.Addr)
		if n.Dir == "" || n.Netns == "" {
			t.Errorf("node %+v has no directory or no namespace", n)
		}
	}
	if diff := cmp.Diff([]string{nodeA + " " + addrA.String(), nodeB + " " + addrB.String()}, got); diff != "" {
		t.Errorf("facts of nodes: %s", diff)
	}
	if f.ID == "" || f.Engine == "" || f.Why == "" || !f.Owned || len(f.Settings) == 0 {
		t.Errorf("facts: %+v", f)
	}
	if _, err := p.Host("c"); !errors.Is(err, machine.ErrNoNode) {
		t.Errorf("a node that is not there: %v", err)
	}
	if err := p.AddRoutes(t.Context(), []machine.Route{{Node: nodeA, To: addrA, Device: "none"}}); err == nil {
		t.Error("a route over no device was taken")
	}
}

func testNames(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	server := netip.MustParseAddr("10.77.0.9")
	err := errors.Join(p.SetNames(t.Context(), []machine.NameRecord{{Name: "sister", Addr: addrB}}), p.SetResolver(t.Context(), server))
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell(t, p, nodeA, "getent hosts sister localhost; grep nameserver /etc/resolv.conf")
	if err != nil || !strings.HasPrefix(out, addrB.String()) || !strings.Contains(out, "localhost") || !strings.HasSuffix(out, "nameserver "+server.String()) {
		t.Errorf("a node's view of names: %q, %v", out, err)
	}
}

func testDownTwice(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	h, err := p.Host(nodeA)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		s.Left(t)
	}
	if _, err := h.Start(t.Context(), host.Command{Name: "true", Path: "/bin/true"}); err == nil {
		t.Error("a process started on a node that is gone")
	}
}
