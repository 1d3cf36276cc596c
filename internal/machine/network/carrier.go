package network

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
)

// Carrier sets devices of the node down or up.
func (n Node) Carrier(c machine.Cable, up bool) error {
	return netns.Do(n.Netns, func() error {
		return withHandle(func(h *netlink.Handle) error {
			for _, name := range c.Devices {
				device, err := h.LinkByName(name)
				if err != nil {
					return fmt.Errorf("find %s: %w", name, err)
				}
				change := h.LinkSetDown
				if up {
					change = func(d netlink.Link) error { return n.setUp(h, d, c.Routes) }
				}
				if err := change(device); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// setUp gives back what the kernel takes from a device that goes down: its link-local
// address and the routes over it.
func (n Node) setUp(h *netlink.Handle, d netlink.Link, routes []machine.Route) error {
	if err := h.LinkSetUp(d); err != nil {
		return err
	}
	if err := linkLocal(h, d, n.Addr); err != nil {
		return err
	}
	for _, r := range routes {
		if r.Device != d.Attrs().Name {
			continue
		}
		if err := h.RouteReplace(n.way(r, d.Attrs().Index)); err != nil {
			return fmt.Errorf("add route to %s: %w", r.To, err)
		}
	}
	return nil
}
