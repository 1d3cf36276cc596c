package fleet

import (
	"context"
	"fmt"
	"net/netip"

	"skerry/internal/base/advice"
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

func (p *part) SetCarrier(ctx context.Context, c machine.Cable, up bool) error {
	i, err := p.index(c.Node)
	if err != nil {
		return err
	}
	return p.fleet.nameError(i, p.parts[i].SetCarrier(ctx, c, up))
}

func (p *part) LookupRoutes(ctx context.Context, node string, to []netip.Addr) ([]string, error) {
	x, err := p.partOf(node)
	if err != nil {
		return nil, err
	}
	return x.LookupRoutes(ctx, node, to)
}

func (p *part) MakeTUN(ctx context.Context, t machine.TUN) error {
	x, err := p.partOf(t.Node)
	if err != nil {
		return err
	}
	return x.MakeTUN(ctx, t)
}

func (p *part) IsListening(ctx context.Context, node string, port int) (bool, error) {
	x, err := p.partOf(node)
	if err != nil {
		return false, err
	}
	return x.IsListening(ctx, node, port)
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
