package lab

import (
	"fmt"
	"slices"

	"skerry/internal/topology"
)

// Unheld tells what of its flavor a node is not held to by its machine, for each such node;
// none where every node that has a flavor is as it says.
func (l *Lab) Unheld() []string {
	var out []string
	for _, lack := range l.part.Facts().Unheld {
		flavored := func(n topology.Node) bool { return n.Name == lack.Node && n.Flavor != nil }
		switch {
		case !slices.ContainsFunc(l.state.Topology.Nodes, flavored):
		case lack.Limit == "":
			out = append(out, fmt.Sprintf("%s is not limited: %s", lack.Node, lack.Why))
		default:
			out = append(out, fmt.Sprintf("%s of %s is not limited: %s", lack.Limit, lack.Node, lack.Why))
		}
	}
	return out
}
