package lab

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
	"skerry/internal/topology"
)

// needsLinkAddresses reports whether the devices of links need their own addresses: if nodes forward packets, or a pair
// has several links, a node's address does not identify the link.
func needsLinkAddresses(c Config) bool {
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

// assignAddresses assigns addresses to the devices of links, and creates the tunnels.
func (l *Lab) assignAddresses(ctx context.Context, c Config) error {
	encrypted := c.Topology.Encryption == topology.WireGuard
	if encrypted {
		if err := l.part.SetAddresses(ctx, l.underlayDevices()); err != nil {
			return err
		}
		if err := l.part.MakeTunnels(ctx, l.tunnelEnds()); err != nil {
			return err
		}
	}
	return l.part.SetAddresses(ctx, l.forwardingDevices(encrypted))
}

// underlayDevices are the devices below tunnels.
func (l *Lab) underlayDevices() []machine.Device {
	var all []machine.Device
	for i, k := range l.links.Links {
		a, b := endAddresses(linkNet, i)
		all = append(all,
			machine.Device{Node: k.A, Name: k.Device, Addrs: []netip.Prefix{netip.PrefixFrom(a, pairBits)}},
			machine.Device{Node: k.B, Name: k.Device, Addrs: []netip.Prefix{netip.PrefixFrom(b, pairBits)}})
	}
	return all
}

// pairBits is the prefix length of a network of two.
const pairBits = 31

// tunnelEnds are the ends of a tunnel over every link.
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

// forwardingDevices are the devices that packets leave nodes by. Each has the node's address first, which is the source
// address, and then one that identifies the link.
func (l *Lab) forwardingDevices(tunnels bool) []machine.Device {
	own := make(map[string]netip.Addr, len(l.state.Topology.Nodes))
	for i, n := range l.state.Topology.Nodes {
		own[n.Name] = nodeAddress(i)
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

// perNet is the number of usable addresses of 10.77.x.0/24: some software treats .0 and .255 specially.
const (
	perNet   = 254
	maxNodes = perNet * 256
)

// nodeAddress is the IPv4 address of the i-th node.
func nodeAddress(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte(i / perNet), byte(i%perNet + 1)})
}

// Networks with two addresses per link: linkNet for the links' devices, 10.80.0.0 to 10.95.255.255, and tunnelNet for
// tunnels, 10.96.0.0 to 10.111.255.255.
const (
	linkNet   = 10<<24 | 80<<16
	tunnelNet = 10<<24 | 96<<16
)

// endAddresses are the addresses of the two ends of the i-th link.
func endAddresses(net uint32, i int) (a, b netip.Addr) {
	n := net + 2*uint32(i)
	at := func(n uint32) netip.Addr {
		return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	return at(n), at(n + 1)
}

// deviceName is the name of the i-th link's device at both ends. It is unique in the lab, since engines may keep the
// other half of it in their own namespace.
func deviceName(i int) string { return fmt.Sprintf("lk%d", i) }

// tunnelName is the name of the device that encrypts the i-th link.
func tunnelName(i int) string { return fmt.Sprintf("wg%d", i) }

// linkSeed gives each link its own random sequence.
func linkSeed(seed uint64, id string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", seed, id)
	return h.Sum64()
}

// routes are from each node to every neighbour over the first link of the pair.
func (l *Lab) routes() []machine.Route {
	addr := make(map[string]netip.Addr, len(l.state.Topology.Nodes))
	for i, n := range l.state.Topology.Nodes {
		addr[n.Name] = nodeAddress(i)
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

// hostNames are the names of the nodes and of the service.
func (l *Lab) hostNames() []machine.NameRecord {
	var all []machine.NameRecord
	for i, n := range l.state.Topology.Nodes {
		all = append(all, machine.NameRecord{Name: n.Name, Addr: nodeAddress(i)})
	}
	if l.state.Service == nil {
		return all
	}
	more := l.state.Service.Names()
	for _, name := range slices.Sorted(maps.Keys(more)) {
		all = append(all, machine.NameRecord{Name: name, Addr: more[name]})
	}
	return all
}

// SetResolver sets the DNS server, at port 53, that processes started from now on use for names other than those of
// nodes.
func (l *Lab) SetResolver(ctx context.Context, server netip.Addr) error {
	return l.part.SetResolver(ctx, server)
}
