package topology

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMesh(t *testing.T) {
	full, err := build(t, "from: azure8", nil)
	if err != nil {
		t.Fatal(err)
	}
	least, most := time.Hour, time.Duration(0)
	for _, l := range full.Links {
		least, most = min(least, l.AB.Latency), max(most, l.AB.Latency)
	}
	for _, links := range []int{7, 12, 28, 64, 200} {
		for seed := range 5 {
			got, err := build(t, fmt.Sprintf("from: azure8\nmesh: {links: %d, seed: %d}", links, seed+1), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Links) != links {
				t.Fatalf("%d links, want %d", len(got.Links), links)
			}
			joined, parts := newForest(8), 8
			index := map[string]int{}
			for i, n := range got.Nodes {
				index[n.Name] = i
			}
			seen, several := map[string]bool{}, map[string]int{}
			for _, l := range got.Links {
				several[LinkID(l.A, l.B)]++
			}
			for _, l := range got.Links {
				if seen[l.ID] {
					t.Errorf("two links have the name %s", l.ID)
				}
				seen[l.ID] = true
				if joined.unite(index[l.A], index[l.B]) {
					parts--
				}
				first := LinkID(l.A, l.B)
				if several[first] > 1 {
					first = nthLinkID(l.A, l.B, 1)
				}
				switch {
				case l.ID == first:
					if diff := cmp.Diff(quality(full, LinkID(l.A, l.B)), quality(got, first)); diff != "" {
						t.Errorf("first link %s differs from the matrix:\n%s", first, diff)
					}
				case !strings.HasPrefix(l.ID, LinkID(l.A, l.B)+"#"):
					t.Errorf("a redundant link of %s has the name %s", first, l.ID)
				case !seen[first]:
					t.Errorf("%s is redundant to none", l.ID)
				case l.AB.Latency < least || l.AB.Latency > most || l.AB.Bandwidth < 111e6 || l.AB.Bandwidth > 995e6:
					t.Errorf("%s is out of the range of the real links: %+v", l.ID, l.AB)
				}
			}
			if parts != 1 {
				t.Errorf("mesh of %d links, seed %d: %d parts", links, seed+1, parts)
			}
		}
	}
}

func TestMeshIsReproducible(t *testing.T) {
	mesh := func(seed int) Topology {
		got, err := build(t, fmt.Sprintf("from: azure8\nmesh: {links: 64, seed: %d}", seed), nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff(mesh(7), mesh(7)); diff != "" {
		t.Errorf("the same seed gave different meshes:\n%s", diff)
	}
	if cmp.Equal(mesh(7), mesh(8)) {
		t.Error("two seeds gave the same mesh")
	}
}

// Fig. 2 of "Fragmented Hybrid Clouds".
func TestNamedLinks(t *testing.T) {
	got, err := build(t, `
nodes: [vm0, vm1, vm2]
links:
  - {name: a, between: [vm0, vm2], rtt: 210ms}
  - {name: b, between: [vm0, vm2], rtt: 140ms}
  - {name: c, between: [vm0, vm1], rtt: 40ms}
  - {name: d, between: [vm1, vm2], rtt: 50ms}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, l := range got.Links {
		text = append(text, fmt.Sprintf("%s %s-%s %v", l.ID, l.A, l.B, l.AB.Latency+l.BA.Latency))
	}
	want := []string{"a vm0-vm2 210ms", "b vm0-vm2 140ms", "c vm0-vm1 40ms", "d vm1-vm2 50ms"}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

// The unnamed link of a pair is a separate link next to named ones, in any order, and its ID differs from the name of
// the pair.
func TestUnnamedParallelLink(t *testing.T) {
	for _, text := range []string{
		"- {name: spare, between: [a, b], rtt: 30ms}\n- {between: [a, b], rtt: 10ms}\n- {between: [b, a], loss: 1%}",
		"- {between: [a, b], rtt: 10ms}\n- {name: spare, between: [a, b], rtt: 30ms}\n- {between: [b, a], loss: 1%}",
	} {
		got, err := build(t, "nodes: [a, b]\nlinks:\n"+text, nil)
		if err != nil {
			t.Fatal(err)
		}
		round := map[string]string{}
		for _, l := range got.Links {
			round[l.ID] = fmt.Sprintf("%v %g", l.AB.Latency+l.BA.Latency, l.AB.Loss)
		}
		if diff := cmp.Diff(map[string]string{"spare": "30ms 0", "a~b#1": "10ms 0.01"}, round); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
	}
}

func TestMeshMistakes(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"too few links", "from: azure8\nmesh: {links: 6}", "cannot connect 8 nodes"},
		{"a name twice", "nodes: [A, B]\nlinks:\n- {name: x, between: [A, B], rtt: 1ms}\n- {name: x, between: [A, B], rtt: 2ms}", "duplicate link ID"},
		{"an invalid name", "nodes: [A, B]\nlinks:\n- {name: 'x y', between: [A, B], rtt: 1ms}", "invalid link name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := build(t, tt.text, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not contain %q", err, tt.want)
			}
		})
	}
}
