package tunnel

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/netns"
)

// VXLAN is one machine's end of an unencrypted network between machines, forwarded by the kernel. A key of 70 bits
// in every packet keeps outsiders out: the random network number and the receiver's random hardware address. Only
// the lab's machines know both.
//
//  1. An outsider sends a packet with another number to the UDP port. The kernel knows no such network.
//  2. The number is right but the hardware address is wrong. The device drops the packet.
//  3. The packet is a broadcast. The kernel drops unicast IP packets that arrive as broadcasts
//     (drop_unicast_in_l2_multicast), and the device does not answer ARP.
//
// An outsider who can see the packets sees the key and the contents.
type VXLAN struct {
	// Netns is the path of the namespace, Device the name of the new device.
	Netns  string
	Device string
	// Network is the network number, Port the machine's UDP port.
	Network      int
	Port         int
	HardwareAddr net.HardwareAddr // of this end
	Peers        []VXLANPeer
}

// VXLANPeer is another machine in the network.
type VXLANPeer struct {
	HardwareAddr net.HardwareAddr
	At           netip.AddrPort // destination of the encapsulated packets
	Addr         netip.Addr     // within the network
}

// vxlanHeader is the maximum overhead in bytes: Ethernet, VXLAN, UDP and IPv6.
const vxlanHeader = 14 + 8 + 8 + 40

// VXLANMTU returns the MTU of a network whose encapsulated packets have at most path bytes.
func VXLANMTU(path int) int { return path - vxlanHeader }

// NewVXLANID draws a random network number.
func NewVXLANID() int {
	var b [4]byte
	for {
		_, _ = rand.Read(b[1:]) // never fails
		if n := binary.BigEndian.Uint32(b[:]); n != 0 {
			return int(n)
		}
	}
}

// NewHardwareAddr draws a random locally administered unicast address.
func NewHardwareAddr() net.HardwareAddr {
	a := make(net.HardwareAddr, 6)
	_, _ = rand.Read(a) // never fails
	a[0] = a[0]&^1 | 2
	return a
}

// Start creates the device, up, in its namespace. Encapsulated packets leave through the caller's namespace.
func (p VXLAN) Start() error {
	space, err := unix.Open(p.Netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace: %w", err)
	}
	defer unix.Close(space)
	err = p.add(space)
	if err != nil {
		err = fmt.Errorf("create device %s between machines: %w", p.Device, err)
		return advice.With(err, "run as root with VXLAN support, or remove between: plain to encrypt the packets")
	}
	return netns.Do(p.Netns, p.configure)
}

// Attributes that package netlink does not define: whether packets may be fragmented, and whether packets to this
// machine bypass the network, which loses packets that a namespace sends to itself.
const (
	vxlanDF          = 29 // IFLA_VXLAN_DF
	vxlanLocalBypass = 31 // IFLA_VXLAN_LOCALBYPASS, since Linux 6.5; ignored before
)

// add creates the device, down, in the namespace of the descriptor space.
func (p VXLAN) add(space int) error {
	request := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	request.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	request.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(p.Device)))
	request.AddData(nl.NewRtAttr(unix.IFLA_ADDRESS, p.HardwareAddr))
	request.AddData(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(space))))
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("vxlan"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_VXLAN_ID, nl.Uint32Attr(uint32(p.Network)))
	data.AddRtAttr(nl.IFLA_VXLAN_PORT, binary.BigEndian.AppendUint16(nil, uint16(p.Port)))
	data.AddRtAttr(nl.IFLA_VXLAN_LEARNING, nl.Uint8Attr(0))
	data.AddRtAttr(vxlanDF, nl.Uint8Attr(1))
	data.AddRtAttr(vxlanLocalBypass, nl.Uint8Attr(0))
	if len(p.Peers) > 0 && p.Peers[0].At.Addr().Is6() {
		data.AddRtAttr(nl.IFLA_VXLAN_LOCAL6, netip.IPv6Unspecified().AsSlice())
	}
	request.AddData(info)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// configure adds the peers to the device, from inside its namespace.
func (p VXLAN) configure() error {
	const unicastToAll = "/proc/sys/net/ipv4/conf/all/drop_unicast_in_l2_multicast"
	if err := os.WriteFile(unicastToAll, []byte("1"), 0); err != nil {
		return fmt.Errorf("drop outsiders' packets: %w", err)
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	device, err := handle.LinkByName(p.Device)
	if err != nil {
		return fmt.Errorf("find %s: %w", p.Device, err)
	}
	if err := handle.LinkSetARPOff(device); err != nil {
		return fmt.Errorf("disable ARP on %s: %w", p.Device, err)
	}
	for _, peer := range p.Peers {
		err := errors.Join(addForwarding(device.Attrs().Index, peer), handle.NeighSet(&netlink.Neigh{
			LinkIndex: device.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
			IP: peer.Addr.AsSlice(), HardwareAddr: peer.HardwareAddr,
		}))
		if err != nil {
			return fmt.Errorf("add peer %[2]s to %[1]s: %[3]w", p.Device, peer.At, err)
		}
	}
	if err := retryPortInUse(func() error { return handle.LinkSetUp(device) }); err != nil { // up listens on the port
		return fmt.Errorf("bring up %s: %w", p.Device, err)
	}
	return nil
}

// addForwarding sets the destination of packets for a peer, with a port, which package netlink does not support.
func addForwarding(device int, peer VXLANPeer) error {
	request := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_APPEND|unix.NLM_F_ACK)
	request.AddData(&netlink.Ndmsg{Family: unix.AF_BRIDGE, Index: uint32(device), State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF})
	request.AddData(nl.NewRtAttr(netlink.NDA_DST, peer.At.Addr().AsSlice()))
	request.AddData(nl.NewRtAttr(netlink.NDA_LLADDR, peer.HardwareAddr))
	request.AddData(nl.NewRtAttr(netlink.NDA_PORT, binary.BigEndian.AppendUint16(nil, peer.At.Port())))
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
