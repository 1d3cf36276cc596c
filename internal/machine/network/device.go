package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
)

// Node is a node's address and the path of its namespace.
type Node struct {
	Netns string
	Addr  netip.Addr
}

// SetAddresses configures devices of the node. It leaves the calling thread, which must be a throwaway, in the node's
// namespace.
func (n Node) SetAddresses(devices []machine.Device) error {
	if err := netns.Enter(n.Netns); err != nil {
		return err
	}
	return withHandle(func(h *netlink.Handle) error {
		for _, d := range devices {
			if err := n.stand(h, d); err != nil {
				return err
			}
		}
		return nil
	})
}

func (n Node) stand(h *netlink.Handle, d machine.Device) error {
	device, err := h.LinkByName(d.Name)
	if err != nil {
		return fmt.Errorf("find %s: %w", d.Name, err)
	}
	for _, a := range d.Addrs {
		// A whole machine's devices already have its address.
		if err := h.AddrReplace(device, &netlink.Addr{IPNet: ipNet(a)}); err != nil {
			return fmt.Errorf("give %s the address %s: %w", d.Name, a, err)
		}
	}
	if d.MTU > 0 {
		if err := h.LinkSetMTU(device, d.MTU); err != nil {
			return fmt.Errorf("give %s the MTU %d: %w", d.Name, d.MTU, err)
		}
	}
	if !d.Up {
		return nil
	}
	if err := errors.Join(h.LinkSetUp(device), linkLocal(h, device, n.Addr)); err != nil {
		return fmt.Errorf("set %s up: %w", d.Name, err)
	}
	return nil
}

// linkLocal adds a link-local address to a device with IPv6, unless it has one. The address is derived from the node's IPv4
// address, so that the two ends of a link differ.
func linkLocal(h *netlink.Handle, d netlink.Link, addr netip.Addr) error {
	off, err := os.ReadFile("/proc/sys/net/ipv6/conf/" + d.Attrs().Name + "/disable_ipv6")
	if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(off)) != "0" {
		return nil // the kernel, or the device, has no IPv6
	}
	have, err := h.AddrList(d, netlink.FAMILY_V6)
	if err != nil || len(have) > 0 {
		return err
	}
	ip := net.IP{0xfe, 0x80, 15: 0}
	four := addr.As4()
	copy(ip[12:], four[:])
	return h.AddrAdd(d, &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD})
}

func (n Node) SetCarrier(c machine.Cable, up bool) error {
	return inside(n.Netns, func(h *netlink.Handle) error {
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
}

// setUp sets a device up and restores its link-local address and routes, which the kernel removed.
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

// MakeTUN makes a TUN device on the node and routes a network to it.
func (n Node) MakeTUN(t machine.TUN) error {
	return inside(n.Netns, func(h *netlink.Handle) error {
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
}

// ErrTaken is returned if the machine's own network uses an address of a lab.
var ErrTaken = errors.New("the machine's own network has the address")

// widest is the shortest prefix length that counts as a network of the machine. Wider networks, such as a VPN's, lose the
// few addresses of a lab while it is up.
const widest = 9

// Vacant returns ErrTaken if the namespace has a network that contains one of the addresses. It leaves the calling thread,
// which must be a throwaway, in the namespace.
func (n Node) Vacant(addrs ...netip.Addr) error {
	if err := netns.Enter(n.Netns); err != nil {
		return err
	}
	return withHandle(func(h *netlink.Handle) error {
		routes, err := h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("list routes: %w", err)
		}
		for _, r := range routes {
			if r.Dst == nil {
				continue
			}
			if ones, _ := r.Dst.Mask.Size(); ones < widest {
				continue
			}
			for _, a := range addrs {
				if r.Dst.Contains(a.AsSlice()) {
					return advice.With(fmt.Errorf("%w: %s is in %s", ErrTaken, a, r.Dst), "leave out whole: true of the machine")
				}
			}
		}
		return nil
	})
}

// Alone overrides the machine's settings for a device of the calling thread's namespace: no IPv6, and answers may use
// another link of a pair. The settings are removed with the device.
func Alone(device string) error {
	return Apply([]KernelSetting{
		{name: "net.ipv6.conf." + device + ".disable_ipv6", value: "1"},
		{name: "net.ipv4.conf." + device + ".rp_filter", value: "2"},
	})
}

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
	err := inside(n.Netns, func(h *netlink.Handle) (err error) {
		names := map[int]string{}
		for i, addr := range to {
			if devices[i], err = lookupRoute(h, addr, names); err != nil {
				break
			}
		}
		return err
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
