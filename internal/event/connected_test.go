package event

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"skerry/internal/topology"
)

// Links that are taken one by one never cut a mesh in two, and in the end a tree is left.
func TestConnectedLinks(t *testing.T) {
	spec := topology.Spec{From: "azure8", Mesh: topology.MeshSpec{Links: 64, Seed: 7}}
	cloud, err := spec.Build(".", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	links := LinkSelector{Connected: true, Selection: Selection{Choose: "random", Count: 1}}
	stage := Layout{Topology: cloud}
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 0))
		down := map[string]bool{}
		for turn := 0; ; turn++ {
			taken := links.draw(stage, turn, down, r)
			if len(taken) == 0 {
				break
			}
			if down[taken[0].id] {
				t.Fatalf("%s was taken twice", taken[0].id)
			}
			down[taken[0].id] = true
			var names []string
			left := cloud
			left.Links = slices.DeleteFunc(slices.Clone(cloud.Links), func(l topology.Link) bool { return down[l.ID] })
			for _, n := range cloud.Nodes {
				names = append(names, n.Name)
			}
			if a, b, apart := left.Apart(names); apart {
				t.Fatalf("after %d links %s and %s are apart", turn+1, a, b)
			}
		}
		if left := len(cloud.Links) - len(down); left != len(cloud.Nodes)-1 {
			t.Errorf("seed %d: %d links are left, want a tree of %d", seed, left, len(cloud.Nodes)-1)
		}
	}
}

func TestLinksByName(t *testing.T) {
	spec := topology.Spec{From: "azure8", Mesh: topology.MeshSpec{Links: 64, Seed: 7}}
	cloud, err := spec.Build(".", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	id := cloud.Links[len(cloud.Links)-1].ID
	got := LinkSelector{IDs: Names{id}, Selection: Selection{Choose: "all"}}.draw(Layout{Topology: cloud}, 0, nil, nil)
	if len(got) != 1 || got[0].id != id || len(got[0].directions) != 2 {
		t.Errorf("%s chose %+v", id, got)
	}
}
