package local

import (
	"context"
	"fmt"

	"skerry/internal/link"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
)

// Tunnel implements machine.Network.
func (p *part) Tunnel(ctx context.Context, ends []machine.TunnelEnd) (err error) {
	specs, err := p.tunnelSpecs(ends)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tunnels, err = tunnel.Start(ctx, specs, p.tunnelOptions())
	return err
}

// tunnelSpecs puts the ends of tunnels together, in the order of the first ones.
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
