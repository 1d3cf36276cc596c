package service

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/netns"
)

// Devices. All names are the same on every node.
const (
	bridgeDevice    = "svc0" // on the node: the containers' network
	vxlanDevice     = "vx0"  // on the node: the bridge's way to the others
	cableDevice     = "ct0"  // on the node: the container's cable, plugged into the bridge
	containerDevice = "eth0" // in the container: its other end
)

const (
	vxlanID   = 42
	vxlanPort = 4789 // IANA's
	// vxlanHeader is what VXLAN adds to a packet: Ethernet, VXLAN, UDP and IPv4 headers.
	vxlanHeader = 14 + 8 + 8 + 20
	loopback    = 1 // the index of "lo" in every namespace
)

// macOf is the hardware address of whoever has an address of the containers' network.
func macOf(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return net.HardwareAddr{0x02, 0x42, b[0], b[1], b[2], b[3]} // 02: locally administered
}

// underlayMTU is the smallest of the devices that packets leave a namespace by.
func underlayMTU(path string) (mtu int, err error) {
	err = inside(path, func(h *netlink.Handle) error {
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

// inside calls f on a thread of its own in a namespace, with netlink to it.
func inside(path string, f func(*netlink.Handle) error) error {
	return netns.Throwaway(func() error {
		if err := netns.Enter(path); err != nil {
			return err
		}
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open netlink: %w", err)
		}
		defer h.Close()
		return f(h)
	})
}

// network makes a node's part of the containers' network.
func (w *works) network(i int) error {
	n := w.Plan.Nodes[i]
	if !n.Gateway.IsValid() {
		return nil
	}
	if n.Member != nil {
		if err := w.makeContainer(n); err != nil {
			return err
		}
	}
	return inside(w.Hosts[i].Netns(), func(h *netlink.Handle) error {
		if err := forwarding(); err != nil {
			return err
		}
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeDevice, MTU: w.mtu, HardwareAddr: macOf(n.Gateway)}}
		if err := h.LinkAdd(bridge); err != nil {
			return missing("bridge", err)
		}
		if n.Member != nil {
			if err := w.plug(h, bridge, n); err != nil {
				return err
			}
		}
		if w.Plan.Overlay() {
			if err := w.vxlan(h, bridge, n); err != nil {
				return err
			}
		}
		return errors.Join(
			w.addressed(h, bridge, n.Gateway),
			w.neighbours(h, bridge, n.Gateway),
		)
	})
}

// missing is a device that could not be made.
func missing(what string, err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
		err = fmt.Errorf("%w: %w", ErrKernel, err)
	}
	return fmt.Errorf("make %s: %w", what, err)
}

// forwarding has the calling thread's namespace pass packets on, and not tell senders of
// ways around it: those are where addresses are not translated.
func forwarding() error {
	for name, value := range map[string]string{
		"ip_forward": "1", "conf/all/send_redirects": "0", "conf/default/send_redirects": "0",
	} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0); err != nil {
			return fmt.Errorf("let the node pass packets on: %w", err)
		}
	}
	return nil
}

// makeContainer makes a member's namespace.
func (w *works) makeContainer(n Node) error {
	return netns.Throwaway(func() error {
		if err := netns.Make(w.Space(n.Name)); err != nil {
			return err
		}
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open netlink: %w", err)
		}
		defer h.Close()
		lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: loopback}}
		if err := h.LinkSetUp(lo); err != nil {
			return fmt.Errorf("set lo up: %w", err)
		}
		return w.Settings()
	})
}

// plug joins a member's container to the bridge.
func (w *works) plug(h *netlink.Handle, bridge netlink.Link, n Node) error {
	space, err := os.Open(w.Space(n.Name))
	if err != nil {
		return err
	}
	defer space.Close()
	cable := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: cableDevice, MTU: w.mtu, MasterIndex: bridge.Attrs().Index},
		PeerName:  containerDevice, PeerHardwareAddr: macOf(n.Member.Listen), PeerNamespace: netlink.NsFd(int(space.Fd())),
	}
	if err := h.LinkAdd(cable); err != nil {
		return missing("the container's cable", err)
	}
	// A member that reaches itself by its service's address: where bridges pass through the
	// rules (br_netfilter), the packet leaves by the port that it came from.
	if err := h.LinkSetHairpin(cable, true); err != nil {
		return fmt.Errorf("let %s send packets back: %w", cableDevice, err)
	}
	if err := h.LinkSetUp(cable); err != nil {
		return fmt.Errorf("set %s up: %w", cableDevice, err)
	}
	return inside(w.Space(n.Name), func(h *netlink.Handle) error {
		eth0, err := h.LinkByName(containerDevice)
		if err != nil {
			return fmt.Errorf("find %s: %w", containerDevice, err)
		}
		err = errors.Join(h.LinkSetMTU(eth0, w.mtu), w.addressed(h, eth0, n.Member.Listen))
		if err != nil {
			return err
		}
		if err := h.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: n.Gateway.AsSlice()}); err != nil {
			return fmt.Errorf("add the container's default route: %w", err)
		}
		return w.neighbours(h, eth0, n.Member.Listen)
	})
}

// addressed gives a device an address on the containers' network and sets it up.
func (w *works) addressed(h *netlink.Handle, d netlink.Link, a netip.Addr) error {
	bits := bridgeNet.Bits()
	if w.Plan.Overlay() {
		bits = overlayNet.Bits()
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, 32)}}
	if err := h.AddrAdd(d, addr); err != nil {
		return fmt.Errorf("give %s the address %s: %w", d.Attrs().Name, a, err)
	}
	if err := h.LinkSetUp(d); err != nil {
		return fmt.Errorf("set %s up: %w", d.Attrs().Name, err)
	}
	return nil
}

// vxlan joins the bridge to those of the other nodes. Where each container is is told to
// the device: nothing has to be learnt of packets, and none is sent to all.
func (w *works) vxlan(h *netlink.Handle, bridge netlink.Link, n Node) error {
	device := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: vxlanDevice, MTU: w.mtu, MasterIndex: bridge.Attrs().Index},
		VxlanId:   vxlanID, SrcAddr: n.Addr.AsSlice(), Port: vxlanPort, Learning: false,
	}
	if err := h.LinkAdd(device); err != nil {
		return missing("VXLAN", err)
	}
	for _, other := range w.Plan.Nodes {
		if other.Name == n.Name {
			continue
		}
		for _, a := range other.inside() {
			err := h.NeighAppend(&netlink.Neigh{
				LinkIndex: device.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF,
				IP: other.Addr.AsSlice(), HardwareAddr: macOf(a),
			})
			if err != nil {
				return fmt.Errorf("tell VXLAN where %s is: %w", a, err)
			}
		}
	}
	if err := h.LinkSetUp(device); err != nil {
		return fmt.Errorf("set %s up: %w", vxlanDevice, err)
	}
	return nil
}

// inside are the addresses on the containers' network that are on a node.
func (n Node) inside() []netip.Addr {
	all := []netip.Addr{n.Gateway}
	if n.Member != nil {
		all = append(all, n.Member.Listen)
	}
	return all
}

// neighbours tells a device the hardware addresses of all others on the containers' network.
func (w *works) neighbours(h *netlink.Handle, d netlink.Link, own netip.Addr) error {
	if !w.Plan.Overlay() {
		return nil
	}
	for _, n := range w.Plan.Nodes {
		for _, a := range n.inside() {
			if a == own {
				continue
			}
			err := h.NeighSet(&netlink.Neigh{
				LinkIndex: d.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: macOf(a),
			})
			if err != nil {
				return fmt.Errorf("tell %s of %s: %w", d.Attrs().Name, a, err)
			}
		}
	}
	return nil
}
