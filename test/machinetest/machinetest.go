// Package machinetest is the contract of machine.Machine. It uses only the interface, each time directly and with all
// arguments and results encoded as JSON.
package machinetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// Site is a machine without labs.
type Site struct {
	// Lab is a unique lab name.
	Lab string
	// Machine and Other are the same machine as two processes see it.
	Machine, Other machine.Machine
	// Left fails the test if anything of a lab remains on the machine. It is also called at the end.
	Left func(t *testing.T)
	// Kill kills a process of the machine.
	Kill func(t *testing.T, pid int)
	// Die brings a part up in a separate process, by Bring, and kills the process after a step.
	Die func(t *testing.T, a machine.PartSpec, after Step)
}

// Step is a stage in making a part.
type Step string

// Steps in their order.
const (
	Prepared Step = "prepared"
	Made     Step = "made"
	Linked   Step = "linked"
	Kept     Step = "kept"
)

// Run tests machines; each call of site returns a new one.
func Run(t *testing.T, site func(t *testing.T) Site) {
	for name, test := range map[string]func(t *testing.T, s Site){
		"nodes":          testNodes,
		"links":          testLinks,
		"trains":         testTrains,
		"carrier":        testCarrier,
		"ways":           testWays,
		"refusals":       testRefusals,
		"another asks":   testAnother,
		"owned":          testOwned,
		"killed owners":  testKilled,
		"changes":        testChanges,
		"damage":         testDamage,
		"names and DNS":  testNames,
		"lab goes twice": testDownTwice,
	} {
		t.Run(name, func(t *testing.T) { test(t, site(t)) })
		t.Run(name+" by message", func(t *testing.T) {
			s := site(t)
			s.Machine, s.Other = Sent(t, s.Machine), Sent(t, s.Other)
			test(t, s)
		})
	}
}

// Nodes of the part that Bring makes, with a link between them.
const (
	nodeA, nodeB = "a", "b"
	deviceOf     = "lk0"
	linkID       = "a~b"
	latency      = 10 * time.Millisecond
)

var (
	addrA = netip.MustParseAddr("10.77.0.1")
	addrB = netip.MustParseAddr("10.77.0.2")
)

// Links is the link that Bring makes.
func Links() []link.Spec {
	q := link.Quality{Latency: latency}
	a, b := link.End{Node: nodeA, Device: deviceOf}, link.End{Node: nodeB, Device: deviceOf}
	return []link.Spec{{ID: linkID, A: a, B: b, AB: q, BA: q, Seed: 1}}
}

func routes() []machine.Route {
	return []machine.Route{{Node: nodeA, To: addrB, Device: deviceOf}, {Node: nodeB, To: addrA, Device: deviceOf}}
}

// Bring makes a part with two nodes and a link, and calls done after each step.
func Bring(ctx context.Context, m machine.Machine, a machine.PartSpec, done func(Step)) (machine.Part, error) {
	p, err := m.Prepare(ctx, a)
	if err != nil {
		return nil, err
	}
	steps := []struct {
		name Step
		work func() error
	}{
		{Prepared, func() error { return nil }},
		{Made, func() error {
			return p.MakeNodes(ctx, []machine.NodeSpec{
				{Name: nodeA, Site: "here", Addr: addrA.String()}, {Name: nodeB, Site: "there", Addr: addrB.String(), Weight: 2},
			})
		}},
		{Linked, func() error {
			if err := p.MakeLinks(ctx, Links()); err != nil {
				return err
			}
			return p.AddRoutes(ctx, routes())
		}},
		{Kept, func() error {
			if err := p.SetNote(ctx, json.RawMessage(`{"factor":1}`)); err != nil {
				return err
			}
			return p.Commit(ctx, json.RawMessage(`{"name":"contract"}`))
		}},
	}
	for _, s := range steps {
		if err := s.work(); err != nil {
			return p, err
		}
		done(s.name)
	}
	return p, nil
}

// up makes a part that is ended with the test.
func up(t *testing.T, s Site, a machine.PartSpec) machine.Part {
	t.Helper()
	p, err := Bring(t.Context(), s.Machine, a, func(Step) {})
	if p != nil {
		t.Cleanup(func() {
			if err := p.Down(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
			s.Left(t)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s Site) partSpec() machine.PartSpec { return machine.PartSpec{Lab: s.Lab, Engine: "auto"} }

func (s Site) owned() machine.PartSpec {
	return machine.PartSpec{Lab: s.Lab, Engine: "auto", Owned: true}
}

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
		t.Errorf("a missing node: %v", err)
	}
	if err := p.AddRoutes(t.Context(), []machine.Route{{Node: nodeA, To: addrA, Device: "none"}}); err == nil {
		t.Error("a route over a missing device was accepted")
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
		t.Error("a process was started on a removed node")
	}
}
