package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
)

// AddRoutes adds the node's routes. It leaves the calling thread, which must be a throwaway, in the node's namespace.
func (n Node) AddRoutes(routes []machine.Route) error {
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

func (n Node) way(r machine.Route, index int) *netlink.Route {
	return &netlink.Route{LinkIndex: index, Dst: hostNet(r.To), Src: n.Addr.AsSlice(), Scope: netlink.SCOPE_LINK}
}

// LookupRoutes returns the output device for each address, "" without a route.
func (n Node) LookupRoutes(to []netip.Addr) ([]string, error) {
	devices := make([]string, len(to))
	err := netns.Do(n.Netns, func() error {
		return withHandle(func(h *netlink.Handle) error {
			names := map[int]string{}
			for i, addr := range to {
				var err error
				if devices[i], err = lookupRoute(h, addr, names); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return devices, err
}

// lookupRoute returns the output device to an address; names caches device names by index.
func lookupRoute(h *netlink.Handle, to netip.Addr, names map[int]string) (string, error) {
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

// IsListening reports whether a program listens on a TCP port of the node's address.
func (n Node) IsListening(port int) (bool, error) {
	err := netns.Do(n.Netns, func() error {
		listener, err := net.Listen("tcp4", netip.AddrPortFrom(n.Addr, uint16(port)).String())
		if err != nil {
			return err
		}
		return listener.Close()
	})
	if errors.Is(err, unix.EADDRINUSE) {
		return true, nil
	}
	return false, err
}
