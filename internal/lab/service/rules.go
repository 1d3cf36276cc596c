package service

import (
	"maps"
	"net/netip"
	"slices"

	"skerry/internal/machine"
	"skerry/internal/topology"
)

// serving is the set of members that answer.
type serving map[string]bool

// targets are the members that a shared service selects: those that serve or, if none does, all, so that clients get an
// error from a member.
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

// nodeRules are the rules of a node's namespace.
func (p Plan) nodeRules(n Node, s serving) machine.RuleSet {
	r := machine.RuleSet{Passing: true}
	switch p.Service.Kind {
	case topology.HostPort:
		if n.Member == nil {
			return machine.RuleSet{}
		}
		for _, inside := range p.Ports {
			r.Forwards = append(r.Forwards, machine.Forward{To: n.Addr, Port: n.Member.Ports[inside], Members: []netip.Addr{n.Member.Listen},
				Inside: inside})
		}
		r.Sources = []machine.SourceRule{
			{From: bridgeNet, As: n.Addr},
			// For a container that connects to its own published port.
			{From: bridgeNet, Into: true, As: n.Gateway},
		}
	case topology.NodePort:
		r.Forwards = p.sharedForwards([]netip.Addr{n.Addr}, s)
		for _, m := range p.Nodes {
			if m.Member != nil {
				for _, inside := range slices.Sorted(maps.Keys(m.Member.Ports)) {
					r.Forwards = append(r.Forwards, machine.Forward{To: n.Addr, Port: m.Member.Ports[inside], Members: []netip.Addr{m.Member.Listen},
						Inside: inside})
				}
			}
		}
		r.Sources = []machine.SourceRule{
			{From: overlayNet, As: n.Addr},
			// The member must answer through the node that tracks the connection.
			{Into: true, As: n.Gateway},
		}
	case topology.ServiceIP:
		r = p.insideRules(s)
		r.Sources = []machine.SourceRule{{From: overlayNet, As: n.Addr}}
	}
	return r
}

// insideRules are the rules of a container, or of any namespace on the network over all nodes.
func (p Plan) insideRules(s serving) machine.RuleSet {
	if p.Service.Kind != topology.ServiceIP {
		return machine.RuleSet{}
	}
	r := machine.RuleSet{Forwards: p.sharedForwards(p.Front, s)}
	for _, n := range p.Nodes {
		if n.Member != nil {
			for _, inside := range p.Ports {
				r.Forwards = append(r.Forwards, machine.Forward{To: n.Member.VIP, Port: inside, Members: []netip.Addr{n.Member.Listen}, Inside: inside})
			}
		}
	}
	return r
}

// sharedForwards forwards addresses to all members.
func (p Plan) sharedForwards(front []netip.Addr, s serving) (all []machine.Forward) {
	for _, a := range front {
		for _, inside := range p.Ports {
			all = append(all, machine.Forward{To: a, Port: p.Shared[inside], Members: p.targets(s), Inside: inside})
		}
	}
	return all
}

// rules are the rules of all namespaces.
func (p Plan) rules(s serving) []machine.RuleSet {
	var all []machine.RuleSet
	add := func(r machine.RuleSet, n Node, container bool) {
		if len(r.Forwards) == 0 && len(r.Sources) == 0 {
			return
		}
		r.Node, r.Container, r.RoundRobin = n.Name, container, p.Service.Balance == roundRobin
		all = append(all, r)
	}
	for _, n := range p.Nodes {
		add(p.nodeRules(n, s), n, false)
		if n.Member != nil && p.Contained() {
			add(p.insideRules(s), n, true)
		}
	}
	return all
}

// bridges describes the containers' network, empty without containers.
func (p Plan) bridges(mtu int) []machine.Bridge {
	bits := bridgeNet.Bits()
	var over []machine.ContainerLocation
	if p.Overlay() {
		bits = overlayNet.Bits()
		for _, n := range p.Nodes {
			for _, a := range n.containerAddrs() {
				over = append(over, machine.ContainerLocation{Addr: a, At: n.Addr})
			}
		}
	}
	var all []machine.Bridge
	for _, n := range p.Nodes {
		if !n.Gateway.IsValid() {
			continue
		}
		b := machine.Bridge{Node: n.Name, Gateway: netip.PrefixFrom(n.Gateway, bits), MTU: mtu, Over: over}
		if n.Member != nil {
			b.Container = n.Member.Listen
		}
		all = append(all, b)
	}
	return all
}

// containerAddrs are the node's addresses on the containers' network.
func (n Node) containerAddrs() []netip.Addr {
	all := []netip.Addr{n.Gateway}
	if n.Member != nil {
		all = append(all, n.Member.Listen)
	}
	return all
}
