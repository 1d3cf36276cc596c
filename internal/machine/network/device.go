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

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
)

// Node is a node's namespace, a path, and the node's address.
type Node struct {
	Netns string
	Addr  netip.Addr
}

// Address has devices of the node stand as asked. The calling thread, which must be a
// throwaway, is in its namespace then.
func (n Node) Address(devices []machine.Device) error {
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
