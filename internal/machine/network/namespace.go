// Package network is the network of nodes as this machine's kernel has it: a namespace each
// with its settings, and the addresses, routes and states of the devices in it.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
)

// loopback is the index of "lo" in every namespace.
const loopback = 1

// Make makes a node's namespace at a path: its loopback device, its address, unless that is
// the zero value, and its kernel settings. The calling thread, which must be a throwaway, is
// in it then.
func Make(path string, addr netip.Addr, settings []Setting) error {
	if err := netns.Create(path); err != nil {
		return err
	}
	return withHandle(func(handle *netlink.Handle) error {
		lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: loopback}}
		if err := handle.LinkSetUp(lo); err != nil {
			return fmt.Errorf("set lo up: %w", err)
		}
		if addr.IsValid() {
			if err := handle.AddrAdd(lo, &netlink.Addr{IPNet: hostNet(addr)}); err != nil {
				return fmt.Errorf("give lo the address %s: %w", addr, err)
			}
		}
		return Apply(settings)
	})
}

// Inside calls f on a thread of its own in a namespace, with netlink to it.
func Inside(path string, f func(*netlink.Handle) error) error {
	return netns.OnNewThread(func() error {
		if err := netns.Enter(path); err != nil {
			return err
		}
		return withHandle(f)
	})
}

// MTU is the smallest of the devices that packets leave a namespace by, 0 without any.
func MTU(path string) (mtu int, err error) {
	err = Inside(path, func(h *netlink.Handle) error {
		links, err := h.LinkList()
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		for _, l := range links {
			if a := l.Attrs(); a.Index != loopback && (mtu == 0 || a.MTU < mtu) {
				mtu = a.MTU
			}
		}
		return nil
	})
	return mtu, err
}

// RemoveDevices removes all devices from a namespace that somebody keeps from ending.
func RemoveDevices(path string) error {
	return Inside(path, func(handle *netlink.Handle) error {
		devices, err := handle.LinkList()
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		var errs []error
		for _, d := range devices {
			if d.Attrs().Index == loopback {
				continue
			}
			if err := handle.LinkDel(d); err != nil && !errors.Is(err, unix.ENODEV) {
				errs = append(errs, fmt.Errorf("remove device %s: %w", d.Attrs().Name, err))
			}
		}
		return errors.Join(errs...)
	})
}

// withHandle calls f with netlink to the calling thread's namespace.
func withHandle(f func(*netlink.Handle) error) error {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	return f(handle)
}

// hostNet is the network of one address.
func hostNet(a netip.Addr) *net.IPNet { return ipNet(netip.PrefixFrom(a, a.BitLen())) }

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
