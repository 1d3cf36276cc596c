// Package machinetest is the contract of machine.Machine. It uses only the interface, each time directly and with all
// arguments and results encoded as JSON.
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

// Site is a machine without labs.
type Site struct {
	// Lab is a unique lab name.
	Lab string
	// Machine and Other are the same machine as two processes see it.
	Machine, Other machine.Machine
	// Left fails the test if anything of a lab is left on the machine. It is also called at the end.
	Left func(t *testing.T)
	// Kill kills a process of the machine.
	Kill func(t *testing.T, pid int)
	// Die brings a part up in a process of its own, by Bring, and kills the process after a step.
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
