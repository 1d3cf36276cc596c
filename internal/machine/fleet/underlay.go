package fleet

import (
	"context"
	"errors"
	"net/netip"

	"skerry/internal/link"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
)

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
