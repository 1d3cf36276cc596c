// Package machinetest is the contract that every machine.Machine keeps, wherever the machine is:
// it is asked by nothing but the interface, and each time as it is and with all that is asked
// and answered sent as JSON on the way.
package machinetest

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/machine"
)

// Site is a machine with nothing on it.
type Site struct {
	// Lab is a name for labs that no other test has.
	Lab string
	// Machine is the machine as one process asks it, Other the same as another one does.
	Machine, Other machine.Machine
	// Left fails the test when anything of labs is left on the machine, at the end or where
	// it is called.
	Left func(t *testing.T)
	// Kill kills a process of the machine by its ID there.
	Kill func(t *testing.T, pid int)
	// Die has a process of its own bring a part up, by Bring, and be killed after a step.
	Die func(t *testing.T, a machine.PartSpec, after Step)
}

// Step of a part on its way up.
type Step string

// Steps, in their order.
const (
	Prepared Step = "prepared"
	Made     Step = "made"
	Linked   Step = "linked"
	Kept     Step = "kept"
)

// Run tests machines; each call of site gives another one.
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

// Nodes of the part that Bring makes, a and b, with a link between them.
const (
	nodeA, nodeB = "a", "b"
	deviceOf     = "lk0"
	linkID       = "a~b"
	latency      = 10 * time.Millisecond
)

// addrs of the nodes.
var (
	addrA = netip.MustParseAddr("10.77.0.1")
	addrB = netip.MustParseAddr("10.77.0.2")
)

// Links is the link that Bring creates.
func Links() []link.Spec {
	q := link.Quality{Latency: latency}
	a, b := link.End{Node: nodeA, Device: deviceOf}, link.End{Node: nodeB, Device: deviceOf}
	return []link.Spec{{ID: linkID, A: a, B: b, AB: q, BA: q, Seed: 1}}
}

// routes lead from each node to the other.
func routes() []machine.Route {
	return []machine.Route{{Node: nodeA, To: addrB, Device: deviceOf}, {Node: nodeB, To: addrA, Device: deviceOf}}
}

// Bring brings up a part of two nodes and a link between them, and tells after each step that
// it is done.
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

// up is a part that is down when the test ends.
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
