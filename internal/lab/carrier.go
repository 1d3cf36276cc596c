package lab

import (
	"context"
	"fmt"

	"skerry/internal/machine"
)

// Carrier sets the devices at both ends of a link down or up, as pulling out a cable
// does, those of the tunnel over it too: the nodes notice at once. A link whose Quality is
// Down looks alive to them.
func (l *Lab) Carrier(id string, up bool) error {
	k, err := l.link(id)
	if err != nil {
		return err
	}
	var ways []machine.Route
	if up && !l.state.Topology.Overlay.Routed() {
		ways = l.routes()
	}
	for _, node := range []string{k.A, k.B} {
		c := machine.Cable{Node: node, Devices: k.devices()}
		for _, r := range ways {
			if r.Node == node {
				c.Routes = append(c.Routes, r)
			}
		}
		if err := l.part.Carrier(context.Background(), c, up); err != nil { // events give no context
			return fmt.Errorf("link %s at %s: %w", id, node, err)
		}
	}
	return nil
}

// devices are those of a link at each end, the lower one first.
func (k Link) devices() []string {
	if k.Tunnel == "" {
		return []string{k.Device}
	}
	return []string{k.Device, k.Tunnel}
}
