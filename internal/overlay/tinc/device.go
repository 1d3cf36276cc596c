package tinc

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/host"
)

const (
	// device is what tincd reads packets from and writes them to.
	device = "tinc"
	// mtu leaves room in 1500 bytes for tinc's header, padding, digest, UDP and IP.
	mtu = 1400
)

// overlayNet is where the nodes' addresses are.
var overlayNet = &net.IPNet{IP: net.IPv4(10, 77, 0, 0), Mask: net.CIDRMask(16, 32)}

// makeDevice makes the device on a node and sends to it what is for other nodes; tincd,
// which finds it there, needs no script for that.
func makeDevice(h host.Host) error {
	err := h.Do(func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open netlink: %w", err)
		}
		defer handle.Close()
		tun := &netlink.Tuntap{
			LinkAttrs: netlink.LinkAttrs{Name: device}, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI,
		}
		if err := netlink.LinkAdd(tun); err != nil {
			return fmt.Errorf("make the device %s: %w", device, err)
		}
		for _, fd := range tun.Fds {
			err = errors.Join(err, fd.Close()) // it is persistent
		}
		made, lookErr := handle.LinkByName(device)
		if err = errors.Join(err, lookErr); err != nil {
			return fmt.Errorf("find the device %s: %w", device, err)
		}
		return errors.Join(handle.LinkSetMTU(made, mtu), handle.LinkSetUp(made), handle.RouteAdd(&netlink.Route{
			LinkIndex: made.Attrs().Index, Dst: overlayNet, Src: net.ParseIP(h.Addr()), Scope: netlink.SCOPE_LINK,
		}))
	})
	if err != nil {
		return fmt.Errorf("preparing %s for tinc: %w", h.Name(), err)
	}
	return nil
}
