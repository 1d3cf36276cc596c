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

// Node is a node's namespace, a path, and the node's address.
type Node struct {
	Netns string
	Addr  netip.Addr
}

// SetAddresses has devices of the node stand as asked. The calling thread, which must be a
// throwaway, is in its namespace then.
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
		// A node that is the machine itself has its address on its devices already.
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

// linkLocal gives a device that has IPv6 an address of that kind unless it has one. It
// is made of the node's IPv4 address, so that the two ends of a link differ.
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

// SetCarrier sets devices of the node down or up.
func (n Node) SetCarrier(c machine.Cable, up bool) error {
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

// MakeTUN makes a device on the node and sends to it what is for a network.
func (n Node) MakeTUN(t machine.TUN) error {
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

// ErrTaken says that a machine's own network has an address that a lab is to have there.
var ErrTaken = errors.New("the machine's own network has the address")

// widest is the length of the widest prefix that counts as a network of the machine's own. Wider ones, as a VPN or a
// company has, lose the few addresses of a lab for as long as that is up.
const widest = 9

// Vacant returns ErrTaken where the namespace has a network that one of the addresses is in. The calling
// thread, which must be a throwaway, is in the namespace then.
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

// Alone has a device of the calling thread's namespace keep from what the namespace's other devices do by the machine's
// settings: nothing of IPv6, and answers may take another link of a pair. Settings of a device go with it.
func Alone(device string) error {
	return Apply([]Setting{
		{name: "net.ipv6.conf." + device + ".disable_ipv6", value: "1"},
		{name: "net.ipv4.conf." + device + ".rp_filter", value: "2"},
	})
}
