package service

import (
	"net/netip"

	"skerry/internal/machine"
)

// bridges are the containers' network as machines are asked for it, none where members are in
// no containers.
func (p Plan) bridges(mtu int) []machine.Bridge {
	bits := bridgeNet.Bits()
	var over []machine.Located
	if p.Overlay() {
		bits = overlayNet.Bits()
		for _, n := range p.Nodes {
			for _, a := range n.inside() {
				over = append(over, machine.Located{Addr: a, At: n.Addr})
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

// inside are the addresses on the containers' network that are on a node.
func (n Node) inside() []netip.Addr {
	all := []netip.Addr{n.Gateway}
	if n.Member != nil {
		all = append(all, n.Member.Listen)
	}
	return all
}
