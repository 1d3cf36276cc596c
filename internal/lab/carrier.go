package lab

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
)

// Carrier sets the devices at both ends of a link down or up, as pulling out a cable
// does, those of the tunnel over it too: the nodes notice at once. A link whose Quality is
// Down looks alive to them.
func (l *Lab) Carrier(id string, up bool) error {
	for _, k := range l.Links() {
		if k.ID != id {
			continue
		}
		ways := routes(l.state.Nodes, l.links.Links)
		if l.state.Topology.Overlay.Routed() {
			ways = nil
		}
		for _, name := range []string{k.A, k.B} {
			node, err := l.Node(name)
			if err != nil {
				return err
			}
			err = node.Do(func() error {
				for _, device := range k.devices() {
					change := setDown
					if up {
						change = func(device string) error { return setUp(device, node.Addr(), ways[name]) }
					}
					if err := change(device); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("link %s at %s: %w", id, name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("%w in lab %s: %s", ErrNoLink, l.state.Name, id)
}

// devices are those of a link at each end, the lower one first.
func (k Link) devices() []string {
	if k.Tunnel == "" {
		return []string{k.Device}
	}
	return []string{k.Device, k.Tunnel}
}

func setDown(name string) error {
	return onDevice(name, func(h *netlink.Handle, d netlink.Link) error { return h.LinkSetDown(d) })
}

// setUp gives back what the kernel takes from a device that goes down: its link-local
// address and the routes over it.
func setUp(name, addr string, ways []route) error {
	return onDevice(name, func(h *netlink.Handle, d netlink.Link) error {
		if err := h.LinkSetUp(d); err != nil {
			return err
		}
		if err := linkLocal(h, d, addr); err != nil {
			return err
		}
		for _, r := range ways {
			if r.device != name {
				continue
			}
			err := h.RouteReplace(&netlink.Route{
				LinkIndex: d.Attrs().Index, Dst: hostNet(r.to), Src: net.ParseIP(addr), Scope: netlink.SCOPE_LINK,
			})
			if err != nil {
				return fmt.Errorf("add route to %s: %w", r.to, err)
			}
		}
		return nil
	})
}

// linkLocal gives a device that has IPv6 an address of that kind unless it has one. It
// is made of the node's IPv4 address, so that the two ends of a link differ.
func linkLocal(h *netlink.Handle, d netlink.Link, addr string) error {
	off, err := os.ReadFile("/proc/sys/net/ipv6/conf/" + d.Attrs().Name + "/disable_ipv6")
	if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(off)) != "0" {
		return nil // the kernel, or the device, has no IPv6
	}
	have, err := h.AddrList(d, netlink.FAMILY_V6)
	if err != nil || len(have) > 0 {
		return err
	}
	v4, err := netip.ParseAddr(addr)
	if err != nil {
		return err
	}
	ip := net.IP{0xfe, 0x80, 15: 0}
	four := v4.As4()
	copy(ip[12:], four[:])
	return h.AddrAdd(d, &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD})
}

// onDevice calls f with a device of the calling thread's namespace.
func onDevice(name string, f func(*netlink.Handle, netlink.Link) error) error {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	device, err := handle.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	return f(handle, device)
}
