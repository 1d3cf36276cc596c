package lab

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"skerry/internal/machine"
)

// names are those of the nodes, and those that the service adds.
func (l *Lab) names() []machine.Named {
	var all []machine.Named
	for i, n := range l.state.Topology.Nodes {
		all = append(all, machine.Named{Name: n.Name, Addr: address(i)})
	}
	if l.state.Service == nil {
		return all
	}
	more := l.state.Service.Names()
	for _, name := range slices.Sorted(maps.Keys(more)) {
		all = append(all, machine.Named{Name: name, Addr: more[name]})
	}
	return all
}

// Resolve has what is started on the nodes from now on ask the DNS server at an address,
// port 53, for the names that are not those of nodes.
func (l *Lab) Resolve(ctx context.Context, server netip.Addr) error {
	return l.part.Resolve(ctx, server)
}
