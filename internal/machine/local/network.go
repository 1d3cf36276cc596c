package local

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"skerry/internal/link"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
	"skerry/internal/machine/network"
)

func (p *part) SetAddresses(ctx context.Context, devices []machine.Device) error {
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
		return at.SetAddresses(byNode[n.Name])
	})
}

func (p *part) AddRoutes(ctx context.Context, routes []machine.Route) error {
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
		return at.AddRoutes(byNode[n.Name])
	})
}

func (p *part) SetCarrier(_ context.Context, c machine.Cable, up bool) error {
	at, err := p.network(c.Node)
	if err != nil {
		return err
	}
	return at.SetCarrier(c, up)
}

func (p *part) LookupRoutes(_ context.Context, node string, to []netip.Addr) ([]string, error) {
	at, err := p.network(node)
	if err != nil {
		return nil, err
	}
	return at.LookupRoutes(to)
}

func (p *part) MakeTUN(_ context.Context, t machine.TUN) error {
	at, err := p.network(t.Node)
	if err != nil {
		return err
	}
	return at.MakeTUN(t)
}

func (p *part) IsListening(_ context.Context, node string, port int) (bool, error) {
	at, err := p.network(node)
	if err != nil {
		return false, err
	}
	return at.IsListening(port)
}

func (p *part) network(node string) (network.Node, error) {
	n, err := p.nodeMade(node)
	if err != nil {
		return network.Node{}, err
	}
	return n.network()
}

func (n node) network() (network.Node, error) {
	addr, err := netip.ParseAddr(n.Addr)
	if err != nil {
		return network.Node{}, fmt.Errorf("address of %s: %w", n.Name, err)
	}
	return network.Node{Netns: n.Netns, Addr: addr}, nil
}

func (p *part) MakeTunnels(ctx context.Context, ends []machine.TunnelEnd) (err error) {
	specs, err := p.tunnelSpecs(ends)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tunnels, err = tunnel.Start(ctx, specs, p.tunnelOptions())
	return err
}

// tunnelSpecs pairs the ends of tunnels, in the order of the first ends.
func (p *part) tunnelSpecs(ends []machine.TunnelEnd) ([]tunnel.Spec, error) {
	at := make(map[string]int, len(ends)/2)
	var specs []tunnel.Spec
	for _, e := range ends {
		end := tunnel.End{Netns: p.place.Namespace(e.Node), Device: e.Device, Addr: e.Addr}
		i, seen := at[e.Link]
		if !seen {
			at[e.Link] = len(specs)
			specs = append(specs, tunnel.Spec{A: end})
			continue
		}
		if specs[i].B != (tunnel.End{}) {
			return nil, fmt.Errorf("%w %s: its tunnel has more than two ends", link.ErrInvalid, e.Link)
		}
		specs[i].B = end
	}
	for id, i := range at {
		if specs[i].B == (tunnel.End{}) {
			return nil, fmt.Errorf("tunnel over link %s: %w", id, machine.ErrElsewhere)
		}
	}
	return specs, nil
}

// bridging bounds the container networks that are made concurrently.
const bridging = 8

func (p *part) MTU(context.Context) (int, error) {
	least := 0
	for _, n := range p.nodesMade() {
		mtu, err := network.MTU(n.Netns)
		if err != nil {
			return 0, err
		}
		if mtu > 0 && (least == 0 || mtu < least) {
			least = mtu
		}
	}
	return least, nil
}

func (p *part) MakeBridges(ctx context.Context, bridges []machine.Bridge) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bridging)
	for _, b := range bridges {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			at, err := p.network(b.Node)
			if err == nil {
				err = network.ContainerNode{Node: at, Space: p.place.Container(b.Node), TCP: p.ask.TCP}.Bridge(b)
			}
			if err != nil {
				return fmt.Errorf("node %s: %w", b.Node, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (p *part) SetRules(_ context.Context, rules []machine.RuleSet) error {
	for _, r := range rules {
		n, err := p.nodeMade(r.Node)
		if err != nil {
			return err
		}
		space := n.Netns
		if r.Container {
			space = p.place.Container(r.Node)
		}
		if err := network.ReplaceRules(space, r); err != nil {
			return fmt.Errorf("node %s: %w", r.Node, err)
		}
	}
	return nil
}
