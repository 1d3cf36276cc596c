package network

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
)

// Route gives the node its routes. The calling thread, which must be a throwaway, is in its
// namespace then.
func (n Node) Route(routes []machine.Route) error {
	if len(routes) == 0 {
		return nil
	}
	if err := netns.Enter(n.Netns); err != nil {
		return err
	}
	return withHandle(func(h *netlink.Handle) error {
		devices, err := h.LinkList()
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		index := make(map[string]int, len(devices))
		for _, d := range devices {
			index[d.Attrs().Name] = d.Attrs().Index
		}
		for _, r := range routes {
			if err := h.RouteAdd(n.way(r, index[r.Device])); err != nil {
				return fmt.Errorf("add route to %s over %s: %w", r.To, r.Device, err)
			}
		}
		return nil
	})
}

// way is a route as the kernel takes it, over the device of that index.
func (n Node) way(r machine.Route, index int) *netlink.Route {
	return &netlink.Route{LinkIndex: index, Dst: hostNet(r.To), Src: n.Addr.AsSlice(), Scope: netlink.SCOPE_LINK}
}
