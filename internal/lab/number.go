package lab

import (
	"context"
	"net/netip"

	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
	"skerry/internal/topology"
)

// numbered tells whether the devices of links have addresses of their own: where nodes
// pass packets on, or a pair has several links, a node's address does not say which link.
func numbered(c Config) bool {
	pairs := make(map[[2]string]bool)
	for _, l := range c.Topology.Links {
		pair := [2]string{min(l.A, l.B), max(l.A, l.B)}
		if pairs[pair] {
			return true
		}
		pairs[pair] = true
	}
	return c.Overlay != nil || c.Topology.Encryption == topology.WireGuard
}

// number gives the devices of links their addresses and lays the tunnels.
func (l *Lab) number(ctx context.Context, c Config) error {
	encrypted := c.Topology.Encryption == topology.WireGuard
	if encrypted {
		if err := l.part.Address(ctx, l.underlay()); err != nil {
			return err
		}
		if err := l.part.Tunnel(ctx, l.tunnelEnds()); err != nil {
			return err
		}
	}
	return l.part.Address(ctx, l.devices(encrypted))
}

// underlay are the devices under tunnels.
func (l *Lab) underlay() []machine.Device {
	var all []machine.Device
	for i, k := range l.links.Links {
		a, b := endAddresses(linkNet, i)
		all = append(all,
			machine.Device{Node: k.A, Name: k.Device, Addrs: []netip.Prefix{netip.PrefixFrom(a, pairBits)}},
			machine.Device{Node: k.B, Name: k.Device, Addrs: []netip.Prefix{netip.PrefixFrom(b, pairBits)}})
	}
	return all
}

// pairBits is the length of the prefix of a network of two.
const pairBits = 31

// tunnelEnds are those of a tunnel over every link.
func (l *Lab) tunnelEnds() []machine.TunnelEnd {
	var all []machine.TunnelEnd
	for i, k := range l.links.Links {
		a, b := endAddresses(linkNet, i)
		all = append(all,
			machine.TunnelEnd{Link: k.ID, Node: k.A, Device: k.Tunnel, Addr: a},
			machine.TunnelEnd{Link: k.ID, Node: k.B, Device: k.Tunnel, Addr: b})
	}
	return all
}

// devices are those that packets leave nodes by. Each has the node's own address first, which
// packets leave with, and then one that says which link it is.
func (l *Lab) devices(tunnels bool) []machine.Device {
	own := make(map[string]netip.Addr, len(l.state.Topology.Nodes))
	for i, n := range l.state.Topology.Nodes {
		own[n.Name] = address(i)
	}
	var all []machine.Device
	for _, k := range l.overlayNet().Links {
		for _, end := range []struct {
			node string
			addr netip.Addr
		}{{k.A, k.AddrA}, {k.B, k.AddrB}} {
			d := machine.Device{Node: end.node, Name: k.Device, Addrs: []netip.Prefix{
				netip.PrefixFrom(own[end.node], 32), netip.PrefixFrom(end.addr, pairBits),
			}}
			if tunnels {
				d.MTU, d.Up = tunnel.MTU, true
			}
			all = append(all, d)
		}
	}
	return all
}
