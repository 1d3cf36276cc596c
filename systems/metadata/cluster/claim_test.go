package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata/cluster"
)

func TestClaims(t *testing.T) {
	g1 := cluster.Holding{Subtrees: map[string]string{"/home": "g3:/.subtrees/a.2", "/b": "g2:/.subtrees/b", "/.incoming/x/c": "g2:/.subtrees/c"}}
	g2 := cluster.Holding{Holds: []string{"/.subtrees/a.1", "/.subtrees/b", "/.subtrees/c"}}
	g3 := cluster.Holding{Holds: []string{"/.subtrees/a.2", "/.subtrees/c.10", "/.subtrees/d"}}
	for name, test := range map[string]struct {
		servers map[string]cluster.Holding
		want    []cluster.Claim
	}{
		"none": {servers: map[string]cluster.Holding{"g1": g1, "g2": g2}},
		"two": {servers: map[string]cluster.Holding{"g1": g1, "g2": g2, "g3": g3}, want: []cluster.Claim{
			{Holders: []string{"g3:/.subtrees/a.2", "g2:/.subtrees/a.1"}, Holder: "g3:/.subtrees/a.2", By: "g1:/home"},
			{Holders: []string{"g3:/.subtrees/c.10", "g2:/.subtrees/c"}},
		}},
	} {
		if diff := cmp.Diff(test.want, cluster.FindClaims(test.servers)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
