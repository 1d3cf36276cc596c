package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
)

// Device names, the same on every node.
const (
	bridgeDevice    = "svc0" // on the node: the containers' network
	vxlanDevice     = "vx0"  // on the node: the bridge's way to the others
	cableDevice     = "ct0"  // on the node: the container's cable, plugged into the bridge
	containerDevice = "eth0" // in the container: its other end
)

const (
	vxlanID   = 42
	vxlanPort = 4789 // IANA's
)

// macOf derives the hardware address from an address of the containers'
func macOf(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return net.HardwareAddr{0x02, 0x42, b[0], b[1], b[2], b[3]} // 02: locally administered
}

// ContainerNode is a node and the path of its container's namespace. Its network of containers is a bridge between the two
// namespaces, VXLAN between the bridges of all nodes, and nftables rules (nat.go).
type ContainerNode struct {
	Node
	Space string
	// TCP holds the topology's kernel settings, as machine.PartSpec does.
	TCP map[string]string
}

// Bridge makes the node's part of the containers' network and its container.
func (n ContainerNode) Bridge(b machine.Bridge) error {
	if b.Container.IsValid() {
		err := netns.OnNewThread(func() error {
			return Make(n.Space, netip.Addr{}, Settings(false, false, n.TCP))
		})
		if err != nil {
			return err
		}
	}
	return RunInside(n.Netns, func(h *netlink.Handle) error {
		if err := forwarding(); err != nil {
			return err
		}
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeDevice, MTU: b.MTU, HardwareAddr: macOf(b.Gateway.Addr())}}
		if err := h.LinkAdd(bridge); err != nil {
			return missing("bridge", err)
		}
		if b.Container.IsValid() {
			if err := n.plug(h, bridge, b); err != nil {
				return err
			}
		}
		if b.Over != nil {
			if err := n.vxlan(h, bridge, b); err != nil {
				return err
			}
		}
		return errors.Join(
			addressed(h, bridge, b.Gateway),
			neighbours(h, bridge, b, b.Gateway.Addr()),
		)
	})
}

func missing(what string, err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
		err = fmt.Errorf("%w: %w", machine.ErrKernel, err)
	}
	return fmt.Errorf("make %s: %w", what, err)
}

// forwarding enables forwarding in the calling thread's namespace and disables ICMP redirects, which would bypass address
// translation.
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

// plug connects the container to the bridge.
func (n ContainerNode) plug(h *netlink.Handle, bridge netlink.Link, b machine.Bridge) error {
	space, err := os.Open(n.Space)
	if err != nil {
		return err
	}
	defer space.Close()
	cable := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: cableDevice, MTU: b.MTU, MasterIndex: bridge.Attrs().Index},
		PeerName:  containerDevice, PeerHardwareAddr: macOf(b.Container), PeerNamespace: netlink.NsFd(int(space.Fd())),
	}
	if err := h.LinkAdd(cable); err != nil {
		return missing("the container's cable", err)
	}
	// Hairpin mode: if bridges apply the rules (br_netfilter), a member that connects to its service's address receives the
	// packet on the port that sent it.
	if err := h.LinkSetHairpin(cable, true); err != nil {
		return fmt.Errorf("let %s send packets back: %w", cableDevice, err)
	}
	if err := h.LinkSetUp(cable); err != nil {
		return fmt.Errorf("set %s up: %w", cableDevice, err)
	}
	return RunInside(n.Space, func(h *netlink.Handle) error {
		eth0, err := h.LinkByName(containerDevice)
		if err != nil {
			return fmt.Errorf("find %s: %w", containerDevice, err)
		}
		own := netip.PrefixFrom(b.Container, b.Gateway.Bits())
		if err := errors.Join(h.LinkSetMTU(eth0, b.MTU), addressed(h, eth0, own)); err != nil {
			return err
		}
		if err := h.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: b.Gateway.Addr().AsSlice()}); err != nil {
			return fmt.Errorf("add the container's default route: %w", err)
		}
		return neighbours(h, eth0, b, b.Container)
	})
}

// addressed adds an address to a device and sets the device up.
func addressed(h *netlink.Handle, d netlink.Link, p netip.Prefix) error {
	if err := h.AddrAdd(d, &netlink.Addr{IPNet: ipNet(p)}); err != nil {
		return fmt.Errorf("give %s the address %s: %w", d.Attrs().Name, p.Addr(), err)
	}
	if err := h.LinkSetUp(d); err != nil {
		return fmt.Errorf("set %s up: %w", d.Attrs().Name, err)
	}
	return nil
}

// vxlan connects the bridge to those of the other nodes. The forwarding table is static: the device neither learns nor
// floods.
func (n ContainerNode) vxlan(h *netlink.Handle, bridge netlink.Link, b machine.Bridge) error {
	device := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: vxlanDevice, MTU: b.MTU, MasterIndex: bridge.Attrs().Index},
		VxlanId:   vxlanID, SrcAddr: n.Addr.AsSlice(), Port: vxlanPort, Learning: false,
	}
	if err := h.LinkAdd(device); err != nil {
		return missing("VXLAN", err)
	}
	for _, other := range b.Over {
		if other.At == n.Addr {
			continue
		}
		err := h.NeighAppend(&netlink.Neigh{
			LinkIndex: device.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF,
			IP: other.At.AsSlice(), HardwareAddr: macOf(other.Addr),
		})
		if err != nil {
			return fmt.Errorf("tell VXLAN where %s is: %w", other.Addr, err)
		}
	}
	if err := h.LinkSetUp(device); err != nil {
		return fmt.Errorf("set %s up: %w", vxlanDevice, err)
	}
	return nil
}

// neighbours adds the hardware addresses of all other containers.
func neighbours(h *netlink.Handle, d netlink.Link, b machine.Bridge, own netip.Addr) error {
	for _, other := range b.Over {
		if other.Addr == own {
			continue
		}
		err := h.NeighSet(&netlink.Neigh{
			LinkIndex: d.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
			IP: other.Addr.AsSlice(), HardwareAddr: macOf(other.Addr),
		})
		if err != nil {
			return fmt.Errorf("tell %s of %s: %w", d.Attrs().Name, other.Addr, err)
		}
	}
	return nil
}
