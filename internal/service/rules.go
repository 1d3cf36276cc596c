package service

import (
	"maps"
	"net/netip"
	"slices"

	"skerry/internal/topology"
)

// rules are those of one network namespace, as data: what package nftables makes of them is
// in nat.go.
type rules struct {
	forwards []forward
	// passing says that forwards hold for packets of others too, not for those alone that
	// begin here.
	passing bool
	sources []source
}

// forward leads connections to a port of an address to a port of some member.
type forward struct {
	to      netip.Addr
	port    int
	members []netip.Addr
	inside  int
}

// source has packets leave with another address, so that the answers come back here.
type source struct {
	from netip.Prefix // of packets from these addresses; the zero value: from any
	// into says that they leave into the containers' network, after a forward; else by
	// any other device.
	into bool
	as   netip.Addr
}

// serving tells which members the service for all may lead to.
type serving map[string]bool

// targets are the members that a shared service leads to: those that serve or, where none
// does, all, so that clients hear from them that they do not.
func (p Plan) targets(s serving) []netip.Addr {
	var all, up []netip.Addr
	for _, n := range p.Nodes {
		if n.Member == nil {
			continue
		}
		all = append(all, n.Member.Listen)
		if s == nil || s[n.Name] {
			up = append(up, n.Member.Listen)
		}
	}
	if len(up) == 0 {
		return all
	}
	return up
}

// nodeRules are those of a node's own namespace.
func (p Plan) nodeRules(n Node, s serving) rules {
	r := rules{passing: true}
	switch p.Service.Kind {
	case topology.HostPort:
		if n.Member == nil {
			return rules{}
		}
		for _, inside := range p.Ports {
			r.forwards = append(r.forwards, forward{n.Addr, n.Member.Ports[inside], []netip.Addr{n.Member.Listen}, inside})
		}
		r.sources = []source{
			{from: bridgeNet, as: n.Addr},
			// A container that connects to its own published port.
			{from: bridgeNet, into: true, as: n.Gateway},
		}
	case topology.NodePort:
		r.forwards = p.shared([]netip.Addr{n.Addr}, s)
		for _, m := range p.Nodes {
			if m.Member != nil {
				for _, inside := range slices.Sorted(maps.Keys(m.Member.Ports)) {
					r.forwards = append(r.forwards, forward{n.Addr, m.Member.Ports[inside], []netip.Addr{m.Member.Listen}, inside})
				}
			}
		}
		r.sources = []source{
			{from: overlayNet, as: n.Addr},
			// Whoever asks: the member must answer the node that knows of the connection.
			{into: true, as: n.Gateway},
		}
	case topology.ServiceIP:
		r = p.insideRules(s)
		r.sources = []source{{from: overlayNet, as: n.Addr}}
	}
	return r
}

// insideRules are those of a container, or of any namespace on the network over all nodes.
func (p Plan) insideRules(s serving) rules {
	if p.Service.Kind != topology.ServiceIP {
		return rules{}
	}
	r := rules{forwards: p.shared(p.Front, s)}
	for _, n := range p.Nodes {
		if n.Member != nil {
			for _, inside := range p.Ports {
				r.forwards = append(r.forwards, forward{n.Member.VIP, inside, []netip.Addr{n.Member.Listen}, inside})
			}
		}
	}
	return r
}

// shared leads from addresses to all members.
func (p Plan) shared(front []netip.Addr, s serving) (all []forward) {
	for _, a := range front {
		for _, inside := range p.Ports {
			all = append(all, forward{a, p.Shared[inside], p.targets(s), inside})
		}
	}
	return all
}
