package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"skerry/internal/base/advice"
	"skerry/internal/link"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
)

// MakeTunnels implements machine.Network. Both ends of a tunnel are on one machine, so keys stay there.
func (p *part) MakeTunnels(ctx context.Context, ends []machine.TunnelEnd) error {
	first := map[string]machine.TunnelEnd{}
	for _, e := range ends {
		if f, seen := first[e.Link]; seen && p.fleet.at[f.Node] != p.fleet.at[e.Node] {
			err := fmt.Errorf("tunnel over link %s: %w", e.Link, machine.ErrElsewhere)
			return advice.With(err, "packets between machines are encrypted whatever the topology's encryption: leave that out")
		}
		first[e.Link] = e
	}
	return distribute(ctx, p, ends, func(e machine.TunnelEnd) string { return e.Node }, machine.Part.MakeTunnels)
}

func (p *part) SetAddresses(ctx context.Context, devices []machine.Device) error {
	return distribute(ctx, p, devices, func(d machine.Device) string { return d.Node }, machine.Part.SetAddresses)
}

func (p *part) AddRoutes(ctx context.Context, routes []machine.Route) error {
	return distribute(ctx, p, routes, func(r machine.Route) string { return r.Node }, machine.Part.AddRoutes)
}

// none is the result of a method without one.
type none struct{}

func (p *part) SetCarrier(ctx context.Context, c machine.Cable, up bool) error {
	_, err := onNode(p, c.Node, func(x machine.Part) (none, error) { return none{}, x.SetCarrier(ctx, c, up) })
	return err
}

func (p *part) LookupRoutes(ctx context.Context, node string, to []netip.Addr) ([]string, error) {
	return onNode(p, node, func(x machine.Part) ([]string, error) { return x.LookupRoutes(ctx, node, to) })
}

func (p *part) MakeTUN(ctx context.Context, t machine.TUN) error {
	_, err := onNode(p, t.Node, func(x machine.Part) (none, error) { return none{}, x.MakeTUN(ctx, t) })
	return err
}

func (p *part) IsListening(ctx context.Context, node string, port int) (bool, error) {
	return onNode(p, node, func(x machine.Part) (bool, error) { return x.IsListening(ctx, node, port) })
}

func (p *part) MTU(ctx context.Context) (int, error) {
	all := make([]int, len(p.parts))
	err := p.each(func(i int, x machine.Part) (err error) {
		all[i], err = x.MTU(ctx)
		return err
	})
	least := 0
	for _, mtu := range all {
		if mtu > 0 && (least == 0 || mtu < least) {
			least = mtu
		}
	}
	return least, err
}

func (p *part) MakeBridges(ctx context.Context, bridges []machine.Bridge) error {
	return distribute(ctx, p, bridges, func(b machine.Bridge) string { return b.Node }, machine.Part.MakeBridges)
}

func (p *part) SetRules(ctx context.Context, rules []machine.RuleSet) error {
	return distribute(ctx, p, rules, func(r machine.RuleSet) string { return r.Node }, machine.Part.SetRules)
}

// underlayAddr returns a machine's address in the network between machines, which is invisible to nodes.
func underlayAddr(i int) netip.Addr {
	n := i + 1
	return netip.AddrFrom4([4]byte{10, 79, byte(n >> 8), byte(n)})
}

const underlayBits = 16

// connectMachines connects all machines to each other.
func (p *part) connectMachines(ctx context.Context) error {
	members := p.fleet.members
	met := make([]machine.Endpoint, len(members))
	network := 0
	if p.fleet.plain {
		network = tunnel.NewVXLANID()
	}
	if err := p.each(func(i int, x machine.Part) (err error) {
		m := machine.EndpointSpec{Addr: netip.PrefixFrom(underlayAddr(i), underlayBits), Plain: network}
		for k, other := range members {
			if k != i {
				m.PeerAddrs = append(m.PeerAddrs, other.Addr)
			}
		}
		met[i], err = x.OpenEndpoint(ctx, m)
		return err
	}); err != nil {
		return err
	}
	path := met[0].Path
	for _, m := range met {
		path = min(path, m.Path)
	}
	p.mtu = tunnel.MeshMTU(path) - link.UDPPathHeader
	if p.fleet.plain {
		p.mtu = tunnel.VXLANMTU(path) - link.UDPPathHeader
	}
	return p.each(func(i int, x machine.Part) error {
		c := machine.PeerSet{Path: path}
		for k, other := range members {
			if k != i {
				c.Peers = append(c.Peers, machine.Peer{
					Machine: other.Name, Key: met[k].Key, Addr: underlayAddr(k), At: netip.AddrPortFrom(other.Addr, uint16(met[k].Port)),
				})
			}
		}
		return x.ConnectPeers(ctx, c)
	})
}

var errNestedFleet = errors.New("machines of a fleet reach each other by themselves")

// OpenEndpoint returns an error: fleets do not nest.
func (p *part) OpenEndpoint(context.Context, machine.EndpointSpec) (machine.Endpoint, error) {
	return machine.Endpoint{}, errNestedFleet
}

func (p *part) ConnectPeers(context.Context, machine.PeerSet) error { return errNestedFleet }
