// Package packet is the packets of an emulated link as a network device hands them
// over: single ones, and super-packets that stand for many packets on the wire.
//
//	| virtio_net_hdr 10 B | link header, 0 or 14 B | IP | TCP or UDP | payload |
//	^0                    ^10                      ^l3  ^l4          ^payload  ^n
//
// A super-packet has one set of headers and up to 64 KiB of payload, to be cut every
// gso_size bytes. The kernel makes them when a device says that it can cut (TSO, USO);
// moving them whole is what makes an emulator in userspace fast. Cut does in software
// what the device would have done.
//
// Source: virtio specification 1.2, section 5.1.6 "Device Operation"; Linux
// include/uapi/linux/virtio_net.h.
package packet

import "encoding/binary"

// VnetHeader is the length in bytes of struct virtio_net_hdr.
const VnetHeader = 10

// Largest is the most bytes a device hands over at once.
const Largest = VnetHeader + etherHeader + 1<<16

const (
	etherHeader = 14

	flagNeedsCsum = 1 // csum_start and csum_offset say where the checksum goes

	gsoNone  = 0
	gsoTCPv4 = 1
	gsoTCPv6 = 4
	gsoUDP   = 5
	gsoECN   = 0x80 // or-ed: the first segment has CWR set
)

// Offsets in struct virtio_net_hdr; its numbers are in the host's byte order.
const (
	vnetFlags      = 0
	vnetGSOType    = 1
	vnetHdrLen     = 2
	vnetGSOSize    = 4
	vnetCsumStart  = 6
	vnetCsumOffset = 8
)

var native = binary.NativeEndian

// Packet is a buffer with a packet in it. Packets come from a Pool.
type Packet struct {
	buf   []byte
	class int8 // of the Pool

	n       int // bytes of buf in use
	l3      int // where IP begins
	l4      int // where TCP or UDP begins, of super-packets
	payload int // what is cut begins here, of super-packets
	gso     int // bytes of payload per segment, of super-packets
	segs    int
}

// Buffer is the buffer that a device may fill.
func (p *Packet) Buffer() []byte { return p.buf }

// Bytes is what a device is given.
func (p *Packet) Bytes() []byte { return p.buf[:p.n] }

// Segments is how many packets on the wire p stands for.
func (p *Packet) Segments() int { return p.segs }

// Wire is the layer-3 bytes of those packets, each with headers of its own.
func (p *Packet) Wire() int { return p.WireRange(0, p.segs) }

// WireRange is the layer-3 bytes of segments i to j-1.
func (p *Packet) WireRange(i, j int) int {
	if p.segs == 1 {
		return p.n - p.l3
	}
	return (j-i)*(p.payload-p.l3) + p.span(j) - p.span(i)
}

// span is the bytes of payload before segment i.
func (p *Packet) span(i int) int { return min(i*p.gso, p.n-p.payload) }

// SetDestination writes the link-layer address that the receiving device answers to,
// unless the packet is for a group of devices.
func (p *Packet) SetDestination(mac [6]byte) {
	if p.l3 == VnetHeader+etherHeader && p.buf[VnetHeader]&1 == 0 {
		copy(p.buf[VnetHeader:], mac[:])
	}
}

// Parse makes sense of n bytes that a device put into Room, with a link header of l2
// bytes. It reports whether they are an IP packet. A super-packet of a kind that Cut
// does not know counts as one packet.
func (p *Packet) Parse(n, l2 int) bool {
	p.n, p.l3, p.segs = n, VnetHeader+l2, 1
	if n <= p.l3 || n > len(p.buf) {
		return false
	}
	version := p.buf[p.l3] >> 4
	if version != 4 && version != 6 {
		return false
	}
	if l2 == etherHeader {
		proto := binary.BigEndian.Uint16(p.buf[p.l3-2:])
		if proto != 0x0800 && proto != 0x86dd {
			return false
		}
	}
	if p.buf[vnetGSOType] != gsoNone {
		p.parseSuper(version)
	}
	return true
}

// ipHeader is the length of an IP header without extensions.
func ipHeader(version byte) int {
	if version == 4 {
		return 20
	}
	return 40
}

// transport is the length of the TCP or UDP header that b begins with and where in it the
// checksum lies; 0 where kind does not fit or b is cut short.
func transport(kind, version byte, b []byte) (header, checksum int) {
	switch {
	case kind == gsoUDP:
		return 8, udpChecksum
	case len(b) < 20, kind == gsoTCPv4 && version != 4, kind == gsoTCPv6 && version != 6:
		return 0, 0
	case kind == gsoTCPv4, kind == gsoTCPv6:
		if n := int(b[12]>>4) * 4; n >= 20 {
			return n, tcpChecksum
		}
	}
	return 0, 0
}

func (p *Packet) parseSuper(version byte) {
	size := int(native.Uint16(p.buf[vnetGSOSize:]))
	l4 := VnetHeader + int(native.Uint16(p.buf[vnetCsumStart:]))
	if p.buf[vnetFlags]&flagNeedsCsum == 0 || size == 0 || l4 < p.l3+ipHeader(version) || l4 >= p.n ||
		version == 4 && l4 != p.l3+p.ipLength() {
		return
	}
	header, checksum := transport(p.buf[vnetGSOType]&^gsoECN, version, p.buf[l4:p.n])
	data := p.n - l4 - header
	if header == 0 || data <= size || int(native.Uint16(p.buf[vnetCsumOffset:])) != checksum {
		return
	}
	p.l4, p.payload, p.gso = l4, l4+header, size
	p.segs = (data + size - 1) / size
}
