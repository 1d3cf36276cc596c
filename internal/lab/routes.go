package lab

import (
	"cmp"
	"net/netip"

	"skerry/internal/machine"
)

// routes are the nodes': from each to every neighbour over the first link of the pair.
func (l *Lab) routes() []machine.Route {
	addr := make(map[string]netip.Addr, len(l.state.Topology.Nodes))
	for i, n := range l.state.Topology.Nodes {
		addr[n.Name] = address(i)
	}
	type pair struct{ from, to string }
	seen := map[pair]bool{}
	var all []machine.Route
	for _, k := range l.links.Links {
		for _, p := range []pair{{k.A, k.B}, {k.B, k.A}} {
			if !seen[p] {
				seen[p] = true
				all = append(all, machine.Route{Node: p.from, To: addr[p.to], Device: cmp.Or(k.Tunnel, k.Device)})
			}
		}
	}
	return all
}
