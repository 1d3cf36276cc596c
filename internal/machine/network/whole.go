package network

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/netns"
)

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
