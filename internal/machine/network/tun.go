package network

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
)

// TUN makes a device on the node and sends to it what is for a network.
func (n Node) TUN(t machine.TUN) error {
	return netns.Do(n.Netns, func() error {
		return withHandle(func(h *netlink.Handle) error {
			tun := &netlink.Tuntap{
				LinkAttrs: netlink.LinkAttrs{Name: t.Name}, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI,
			}
			if err := netlink.LinkAdd(tun); err != nil {
				return fmt.Errorf("make the device %s: %w", t.Name, err)
			}
			var err error
			for _, fd := range tun.Fds {
				err = errors.Join(err, fd.Close()) // it is persistent
			}
			made, lookErr := h.LinkByName(t.Name)
			if err = errors.Join(err, lookErr); err != nil {
				return fmt.Errorf("find the device %s: %w", t.Name, err)
			}
			return errors.Join(h.LinkSetMTU(made, t.MTU), h.LinkSetUp(made), h.RouteAdd(&netlink.Route{
				LinkIndex: made.Attrs().Index, Dst: ipNet(t.To), Src: n.Addr.AsSlice(), Scope: netlink.SCOPE_LINK,
			}))
		})
	})
}
