package network

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
)

// Ways tells, for each address, the device by which the node's kernel sends packets there, ""
// where it has no route.
func (n Node) Ways(to []netip.Addr) ([]string, error) {
	devices := make([]string, len(to))
	err := netns.Do(n.Netns, func() error {
		return withHandle(func(h *netlink.Handle) error {
			names := map[int]string{}
			for i, addr := range to {
				var err error
				if devices[i], err = way(h, addr, names); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return devices, err
}

// way is the device to an address; names are those of devices that are known already, by
// their index.
func way(h *netlink.Handle, to netip.Addr, names map[int]string) (string, error) {
	routes, err := h.RouteGet(to.AsSlice())
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask for the route to %s: %w", to, err)
	}
	if len(routes) == 0 || routes[0].Type == unix.RTN_UNREACHABLE {
		return "", nil
	}
	index := routes[0].LinkIndex
	if names[index] == "" {
		device, err := h.LinkByIndex(index)
		if err != nil {
			return "", fmt.Errorf("find device %d: %w", index, err)
		}
		names[index] = device.Attrs().Name
	}
	return names[index], nil
}
