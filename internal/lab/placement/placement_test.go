package placement

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
	"skerry/internal/topology"
)

const gib = 1 << 30

func node(name, site string, cpu float64, memory int64) topology.Node {
	return topology.Node{Name: name, Site: site, CPU: cpu, Memory: memory}
}

func TestPlaceNodes(t *testing.T) {
	cloud := topology.Topology{Nodes: []topology.Node{
		node("client", "home", 0, 0),
		node("p1", "Pune", 1, gib), node("p2", "Pune", 1, gib),
		node("s1", "Sydney", 2, 2*gib),
	}}
	small, big := Machine{Name: "small", Cores: 2, Memory: 2 * gib}, Machine{Name: "big", Cores: 4, Memory: 8 * gib}
	tests := map[string]struct {
		machines []Machine
		rules    map[string]string
		want     map[string]string
	}{
		"by capacity": {[]Machine{small, big}, nil, map[string]string{"p1": "big", "p2": "big", "s1": "small", "client": "big"}},
		"sites stay together": {[]Machine{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil,
			map[string]string{"p1": "a", "p2": "a", "s1": "b", "client": "c"}},
		"a site that fits nowhere is split": {[]Machine{{Name: "a", Cores: 2, Memory: gib}, {Name: "b", Cores: 2, Memory: 3 * gib},
			{Name: "c", Memory: 2 * gib, Cores: 1}},
			map[string]string{"Sydney": "c"}, map[string]string{"p1": "b", "p2": "b", "s1": "c", "client": "a"}},
		"as requested": {[]Machine{small, big}, map[string]string{"Pune": "small", "p2": "big", "*": "big"},
			map[string]string{"p1": "small", "p2": "big", "s1": "big", "client": "big"}},
		"a machine per site": {[]Machine{{Name: "pune", Site: "Pune"}, big}, map[string]string{"*": "spread"},
			map[string]string{"p1": "pune", "p2": "pune", "s1": "big", "client": "big"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := PlaceNodes(cloud, tt.machines, tt.rules)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.MachineOf); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A whole machine has one node, which has no limits.
func TestPlaceWholeMachines(t *testing.T) {
	cloud := topology.Topology{Nodes: []topology.Node{node("client", "home", 0, 0), node("p1", "Pune", 0, 0), node("p2", "Pune", 0, 0),
		node("s1", "Sydney", 1, 0)}}
	got, err := PlaceNodes(cloud, []Machine{{Name: "a", Whole: true}, {Name: "b", Whole: true}, {Name: "rest"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if whole := got.Whole(); len(whole) != 1 || whole[0] != "client" && whole[0] != "p1" {
		t.Errorf("whole machines are %v of %v", whole, got.MachineOf)
	}
	if got.MachineOf["s1"] != "rest" || got.MachineOf["p1"] != "rest" || got.MachineOf["p2"] != "rest" {
		t.Errorf("nodes are at %v", got.MachineOf)
	}
	all := []Machine{{Name: "a", Whole: true}, {Name: "b", Whole: true}, {Name: "c", Whole: true}}
	cloud.Nodes = cloud.Nodes[:3]
	if got, err = PlaceNodes(cloud, all, nil); err != nil || len(got.Whole()) != 3 {
		t.Errorf("three nodes on three machines: %v, %v", got.MachineOf, err)
	}
}

func TestPlaceNodesErrors(t *testing.T) {
	cloud := topology.Topology{Nodes: []topology.Node{node("a", "Pune", 1, 2*gib), node("b", "Pune", 1, 2*gib)}}
	one := []Machine{{Name: "rack-1", Memory: 3 * gib}}
	for name, tt := range map[string]struct {
		machines []Machine
		rules    map[string]string
		advised  bool
	}{
		"no machines":              {},
		"too little memory":        {machines: one, advised: true},
		"too many on a machine":    {machines: one, rules: map[string]string{"*": "rack-1"}},
		"an unknown machine":       {machines: one, rules: map[string]string{"*": "rack-2"}, advised: true},
		"an unknown site":          {machines: one, rules: map[string]string{"Puna": "rack-1"}, advised: true},
		"two on a whole machine":   {machines: []Machine{{Name: "rack-1", Whole: true}}, rules: map[string]string{"*": "rack-1"}, advised: true},
		"limits on whole machines": {machines: []Machine{{Name: "rack-1", Whole: true}, {Name: "rack-2", Whole: true}}, advised: true},
	} {
		_, err := PlaceNodes(cloud, tt.machines, tt.rules)
		if !errors.Is(err, ErrPlace) || (advice.Of(err) != "") != tt.advised {
			t.Errorf("%s: %v (%s)", name, err, advice.Of(err))
		}
	}
}
