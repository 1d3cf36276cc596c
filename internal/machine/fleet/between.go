package fleet

import (
	"context"
	"errors"
	"net/netip"

	"skerry/internal/link"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
)

// inside is the address of a machine in the network between machines, which no node sees.
func inside(i int) netip.Addr {
	n := i + 1
	return netip.AddrFrom4([4]byte{10, 79, byte(n >> 8), byte(n)})
}

const insideBits = 16

// meet has all machines reach each other.
func (p *part) meet(ctx context.Context) error {
	members := p.fleet.members
	met := make([]machine.Met, len(members))
	network := 0
	if p.fleet.plain {
		network = tunnel.NewVXLANID()
	}
	if err := p.each(func(i int, x machine.Part) (err error) {
		m := machine.Meeting{Addr: netip.PrefixFrom(inside(i), insideBits), Plain: network}
		for k, other := range members {
			if k != i {
				m.Others = append(m.Others, other.Addr)
			}
		}
		met[i], err = x.Meet(ctx, m)
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
		c := machine.Crossing{Path: path}
		for k, other := range members {
			if k != i {
				c.Others = append(c.Others, machine.Other{
					Machine: other.Name, Key: met[k].Key, Addr: inside(k), At: netip.AddrPortFrom(other.Addr, uint16(met[k].Port)),
				})
			}
		}
		return x.Cross(ctx, c)
	})
}

var errWithin = errors.New("machines of a fleet reach each other by themselves")

// Meet implements machine.Between: a fleet is not part of another.
func (p *part) Meet(context.Context, machine.Meeting) (machine.Met, error) {
	return machine.Met{}, errWithin
}

// Cross implements machine.Between.
func (p *part) Cross(context.Context, machine.Crossing) error { return errWithin }
