package local

import (
	"context"
	"fmt"
	"net/netip"

	"skerry/internal/machine"
	"skerry/internal/machine/network"
)

// Address implements machine.Network.
func (p *part) Address(ctx context.Context, devices []machine.Device) error {
	byNode := map[string][]machine.Device{}
	for _, d := range devices {
		byNode[d.Node] = append(byNode[d.Node], d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.each(ctx, "addresses", func(n node) error {
		at, err := n.network()
		if err == nil && n.whole() {
			err = at.Vacant(others(at.Addr, byNode[n.Name])...)
		}
		if err != nil {
			return err
		}
		return at.Address(byNode[n.Name])
	})
}

// Route implements machine.Network.
func (p *part) Route(ctx context.Context, routes []machine.Route) error {
	byNode := map[string][]machine.Route{}
	for _, r := range routes {
		byNode[r.Node] = append(byNode[r.Node], r)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.each(ctx, "routes", func(n node) error {
		at, err := n.network()
		if err == nil && n.whole() {
			err = at.Vacant(ends(byNode[n.Name])...)
		}
		if err != nil {
			return err
		}
		return at.Route(byNode[n.Name])
	})
}

// Carrier implements machine.Network.
func (p *part) Carrier(_ context.Context, c machine.Cable, up bool) error {
	at, err := p.network(c.Node)
	if err != nil {
		return err
	}
	return at.Carrier(c, up)
}

// Ways implements machine.Network.
func (p *part) Ways(_ context.Context, node string, to []netip.Addr) ([]string, error) {
	at, err := p.network(node)
	if err != nil {
		return nil, err
	}
	return at.Ways(to)
}

// TUN implements machine.Network.
func (p *part) TUN(_ context.Context, t machine.TUN) error {
	at, err := p.network(t.Node)
	if err != nil {
		return err
	}
	return at.TUN(t)
}

// Listening implements machine.Network.
func (p *part) Listening(_ context.Context, node string, port int) (bool, error) {
	at, err := p.network(node)
	if err != nil {
		return false, err
	}
	return at.Listening(port)
}

// network is what the kernel has of a node; ErrNoNode when there is none of that name.
func (p *part) network(node string) (network.Node, error) {
	n, err := p.nodeMade(node)
	if err != nil {
		return network.Node{}, err
	}
	return n.network()
}

// network is what the kernel has of the node.
func (n node) network() (network.Node, error) {
	addr, err := netip.ParseAddr(n.Addr)
	if err != nil {
		return network.Node{}, fmt.Errorf("address of %s: %w", n.Name, err)
	}
	return network.Node{Netns: n.Netns, Addr: addr}, nil
}
