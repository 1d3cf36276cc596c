package fleet

import (
	"context"
	"net/netip"

	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// Make implements machine.Nodes. Machines whose nodes are linked reach each other from then on.
func (p *part) Make(ctx context.Context, nodes []machine.Node) error {
	err := shared(p, nodes, func(n machine.Node) string { return n.Name }, func(x machine.Part, these []machine.Node) error {
		return x.Make(ctx, these)
	})
	if err != nil || p.fleet.One() {
		return err
	}
	return p.meet(ctx)
}

// Host implements machine.Nodes.
func (p *part) Host(node string) (host.Host, error) {
	i, err := p.index(node)
	if err != nil {
		return nil, err
	}
	h, err := p.parts[i].Host(node)
	return h, p.fleet.named(i, err)
}

// Contain implements machine.Nodes.
func (p *part) Contain(c machine.Container) (host.Host, error) {
	i, err := p.index(c.Node)
	if err != nil {
		return nil, err
	}
	h, err := p.parts[i].Contain(c)
	return h, p.fleet.named(i, err)
}

// Name implements machine.Nodes: all names are known on all machines.
func (p *part) Name(ctx context.Context, names []machine.Named) error {
	return p.each(func(_ int, x machine.Part) error { return x.Name(ctx, names) })
}

// Resolve implements machine.Nodes.
func (p *part) Resolve(ctx context.Context, server netip.Addr) error {
	return p.each(func(_ int, x machine.Part) error { return x.Resolve(ctx, server) })
}
