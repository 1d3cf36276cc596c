package fleet

import (
	"context"
	"fmt"
	"net/netip"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
)

// Tunnel implements machine.Network. Both ends of a tunnel are on one machine: its keys stay there.
func (p *part) Tunnel(ctx context.Context, ends []machine.TunnelEnd) error {
	first := map[string]machine.TunnelEnd{}
	for _, e := range ends {
		if f, seen := first[e.Link]; seen && p.fleet.at[f.Node] != p.fleet.at[e.Node] {
			err := fmt.Errorf("tunnel over link %s: %w", e.Link, machine.ErrElsewhere)
			return advice.With(err, "packets between machines are encrypted whatever the topology's encryption: leave that out")
		}
		first[e.Link] = e
	}
	return shared(p, ends, func(e machine.TunnelEnd) string { return e.Node }, func(x machine.Part, these []machine.TunnelEnd) error {
		return x.Tunnel(ctx, these)
	})
}

// Address implements machine.Network.
func (p *part) Address(ctx context.Context, devices []machine.Device) error {
	return shared(p, devices, func(d machine.Device) string { return d.Node }, func(x machine.Part, these []machine.Device) error {
		return x.Address(ctx, these)
	})
}

// Route implements machine.Network.
func (p *part) Route(ctx context.Context, routes []machine.Route) error {
	return shared(p, routes, func(r machine.Route) string { return r.Node }, func(x machine.Part, these []machine.Route) error {
		return x.Route(ctx, these)
	})
}

// Carrier implements machine.Network.
func (p *part) Carrier(ctx context.Context, c machine.Cable, up bool) error {
	i, err := p.index(c.Node)
	if err != nil {
		return err
	}
	return p.fleet.named(i, p.parts[i].Carrier(ctx, c, up))
}

// Ways implements machine.Network.
func (p *part) Ways(ctx context.Context, node string, to []netip.Addr) ([]string, error) {
	x, err := p.on(node)
	if err != nil {
		return nil, err
	}
	return x.Ways(ctx, node, to)
}

// TUN implements machine.Network.
func (p *part) TUN(ctx context.Context, t machine.TUN) error {
	x, err := p.on(t.Node)
	if err != nil {
		return err
	}
	return x.TUN(ctx, t)
}

// Listening implements machine.Network.
func (p *part) Listening(ctx context.Context, node string, port int) (bool, error) {
	x, err := p.on(node)
	if err != nil {
		return false, err
	}
	return x.Listening(ctx, node, port)
}

// MTU implements machine.Services.
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

// Bridge implements machine.Services.
func (p *part) Bridge(ctx context.Context, bridges []machine.Bridge) error {
	return shared(p, bridges, func(b machine.Bridge) string { return b.Node }, func(x machine.Part, these []machine.Bridge) error {
		return x.Bridge(ctx, these)
	})
}

// Rule implements machine.Services.
func (p *part) Rule(ctx context.Context, rules []machine.Rules) error {
	return shared(p, rules, func(r machine.Rules) string { return r.Node }, func(x machine.Part, these []machine.Rules) error {
		return x.Rule(ctx, these)
	})
}
