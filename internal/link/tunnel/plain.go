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

// VXLAN is one machine's end of a network between machines whose packets are not encrypted: VXLAN,
// which the kernel moves. What keeps strangers out is a key of 70 bits that every packet shows, its
// network's number and the receiver's hardware address, both random and told to the lab's machines
// alone:
//
//  1. A stranger sends a packet to the UDP port. It has another number: the kernel knows no such network.
//  2. It has the right number, and goes to another hardware address: the device drops it.
//  3. It goes to all hardware addresses: the kernel drops an IP packet to one address that came to all
//     (drop_unicast_in_l2_multicast), and the device answers nobody who asks for its hardware address.
//
// A stranger who sees packets on their way sees the key in them, and what they carry.
type VXLAN struct {
	// Netns is the path of the namespace, Device the name of the device made there.
	Netns  string
	Device string
	// Network is its number, Port the machine's UDP port.
	Network      int
	Port         int
	HardwareAddr net.HardwareAddr // the end's own
	Peers        []VXLANPeer
}

// VXLANPeer is another machine of a Plain.
type VXLANPeer struct {
	HardwareAddr net.HardwareAddr
	At           netip.AddrPort // where packets for it go
	Addr         netip.Addr     // within the network
}

// vxlanHeader is what VXLAN adds to a packet at most, in bytes: Ethernet, VXLAN, UDP and IPv6 headers.
const vxlanHeader = 14 + 8 + 8 + 40

// VXLANMTU is the MTU of a Plain whose packets between machines are to be no longer than so many bytes.
func VXLANMTU(path int) int { return path - vxlanHeader }

// NewVXLANID draws the number of a network.
func NewVXLANID() int {
	var b [4]byte
	for {
		_, _ = rand.Read(b[1:]) // it never fails
		if n := binary.BigEndian.Uint32(b[:]); n != 0 {
			return int(n)
		}
	}
}

// NewHardwareAddr draws the address of an end: one that nobody has by its maker, of one device.
func NewHardwareAddr() net.HardwareAddr {
	a := make(net.HardwareAddr, 6)
	_, _ = rand.Read(a) // it never fails
	a[0] = a[0]&^1 | 2
	return a
}

// Start makes the device, up, which goes with its namespace. The machine's own namespace, which packets leave by,
// is that of the caller.
func (p VXLAN) Start() error {
	space, err := unix.Open(p.Netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace: %w", err)
	}
	defer unix.Close(space)
	err = p.add(space)
	if err != nil {
		err = fmt.Errorf("make the device %s of the network between machines: %w", p.Device, err)
		return advice.With(err, "packets cross plain where root may make VXLAN devices; leave between: plain out, and they are encrypted")
	}
	return netns.Do(p.Netns, p.configure)
}

// What package netlink has no word for: whether packets may be cut on their way, and whether those for
// this machine itself take a short cut, which loses what a namespace sends on its own.
const (
	vxlanDF          = 29 // IFLA_VXLAN_DF
	vxlanLocalBypass = 31 // IFLA_VXLAN_LOCALBYPASS, since Linux 6.5; an older one takes no notice
)

// add makes the device in the namespace that space is open on, down.
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

// configure tells the device of the others, from within its namespace.
func (p VXLAN) configure() error {
	const unicastToAll = "/proc/sys/net/ipv4/conf/all/drop_unicast_in_l2_multicast"
	if err := os.WriteFile(unicastToAll, []byte("1"), 0); err != nil {
		return fmt.Errorf("keep strangers' packets out: %w", err)
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
		return fmt.Errorf("have %s answer nobody: %w", p.Device, err)
	}
	for _, peer := range p.Peers {
		err := errors.Join(addForwarding(device.Attrs().Index, peer), handle.NeighSet(&netlink.Neigh{
			LinkIndex: device.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
			IP: peer.Addr.AsSlice(), HardwareAddr: peer.HardwareAddr,
		}))
		if err != nil {
			return fmt.Errorf("tell %s of %s: %w", p.Device, peer.At, err)
		}
	}
	if err := retryPortInUse(func() error { return handle.LinkSetUp(device) }); err != nil { // which listens on the port
		return fmt.Errorf("set %s up: %w", p.Device, err)
	}
	return nil
}

// addForwarding says where packets for a peer go, with a port of its own, which package netlink has no word
// for.
func addForwarding(device int, peer VXLANPeer) error {
	request := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_APPEND|unix.NLM_F_ACK)
	request.AddData(&netlink.Ndmsg{Family: unix.AF_BRIDGE, Index: uint32(device), State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF})
	request.AddData(nl.NewRtAttr(netlink.NDA_DST, peer.At.Addr().AsSlice()))
	request.AddData(nl.NewRtAttr(netlink.NDA_LLADDR, peer.HardwareAddr))
	request.AddData(nl.NewRtAttr(netlink.NDA_PORT, binary.BigEndian.AppendUint16(nil, peer.At.Port())))
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
