// Package packet represents the packets of an emulated link as a network device delivers them: single
// packets, and super-packets that stand for many packets on the wire.
//
//	| virtio_net_hdr 10 B | link header, 0 or 14 B | IP | TCP or UDP | payload |
//	^0                    ^10                      ^l3  ^l4          ^payload  ^n
//
// A super-packet has one set of headers and up to 64 KiB of payload in segments of gso_size bytes. The
// kernel creates them for devices with segmentation offload (TSO, USO). Moving them whole makes an emulator
// in userspace fast. Cut does in software what such a device does.
//
// Source: virtio specification 1.2, section 5.1.6 "Device Operation"; Linux
// include/uapi/linux/virtio_net.h.
package packet

import (
	"encoding/binary"
)

// VnetHeader is the length in bytes of struct virtio_net_hdr.
const VnetHeader = 10

// Largest is the maximum number of bytes that a device delivers at once.
const Largest = VnetHeader + etherHeader + 1<<16

const (
	etherHeader = 14

	flagNeedsCsum = 1 // csum_start and csum_offset locate the checksum

	gsoNone  = 0
	gsoTCPv4 = 1
	gsoTCPv6 = 4
	gsoUDP   = 5
	gsoECN   = 0x80 // flag: the first segment has CWR set
)

// Offsets in struct virtio_net_hdr; numbers are in host byte order.
const (
	vnetFlags      = 0
	vnetGSOType    = 1
	vnetHdrLen     = 2
	vnetGSOSize    = 4
	vnetCsumStart  = 6
	vnetCsumOffset = 8
)

var native = binary.NativeEndian

// Packet is a buffer from a Pool with a packet in it.
type Packet struct {
	buf   []byte
	class int8 // of the Pool

	n       int // bytes of buf in use
	l3      int // offset of IP
	l4      int // offset of TCP or UDP, in super-packets
	payload int // offset of the payload, in super-packets
	gso     int // payload bytes per segment, in super-packets
	segs    int
}

// Buffer returns the whole buffer, for a device to fill.
func (p *Packet) Buffer() []byte { return p.buf }

// Bytes returns the packet with its headers.
func (p *Packet) Bytes() []byte { return p.buf[:p.n] }

// Segments returns the number of packets on the wire that p stands for.
func (p *Packet) Segments() int { return p.segs }

// Wire returns the layer-3 bytes of all segments, each with its own headers.
func (p *Packet) Wire() int { return p.WireRange(0, p.segs) }

// WireRange returns the layer-3 bytes of segments i to j-1.
func (p *Packet) WireRange(i, j int) int {
	if p.segs == 1 {
		return p.n - p.l3
	}
	return (j-i)*(p.payload-p.l3) + p.span(j) - p.span(i)
}

// span returns the payload bytes before segment i.
func (p *Packet) span(i int) int { return min(i*p.gso, p.n-p.payload) }

// SetDestination writes the receiving device's link-layer address, unless the packet is a multicast.
func (p *Packet) SetDestination(mac [6]byte) {
	if p.l3 == VnetHeader+etherHeader && p.buf[VnetHeader]&1 == 0 {
		copy(p.buf[VnetHeader:], mac[:])
	}
}

// Parse parses n bytes in the buffer with a link header of l2 bytes. It reports whether they are an IP
// packet. A super-packet that Cut does not support counts as one packet.
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

// ipHeader returns the length of an IP header without options or extensions.
func ipHeader(version byte) int {
	if version == 4 {
		return 20
	}
	return 40
}

// transport returns the length of the TCP or UDP header in b and the offset of its checksum, 0 if kind
// does not match or b is truncated.
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

// classes are the buffer sizes in bytes: acknowledgements, single packets, parts of super-packets, and
// whole super-packets.
var classes = [...]int{256, 2048, 16 << 10, Largest}

// Pool reuses packets: steady traffic allocates nothing. It is not safe for concurrent use.
type Pool struct {
	limit int64
	used  int64
	free  [len(classes)][]*Packet
	least [len(classes)]int // minimum length of free since the last Trim
}

// NewPool creates a pool with at most limit bytes in use.
func NewPool(limit int64) *Pool { return &Pool{limit: limit} }

// Get returns a packet with a buffer of at least size bytes, or nil at the limit.
func (p *Pool) Get(size int) *Packet {
	class := 0
	for class < len(classes)-1 && classes[class] < size {
		class++
	}
	if p.used+int64(classes[class]) > p.limit {
		return nil
	}
	p.used += int64(classes[class])
	free := p.free[class]
	if len(free) == 0 {
		return &Packet{buf: make([]byte, classes[class]), class: int8(class)}
	}
	last := len(free) - 1
	got := free[last]
	free[last] = nil
	p.free[class] = free[:last]
	p.least[class] = min(p.least[class], last)
	return got
}

func (p *Pool) Put(k *Packet) {
	p.used -= int64(classes[k.class])
	p.free[k.class] = append(p.free[k.class], k)
}

// Used returns the bytes of buffers in use.
func (p *Pool) Used() int64 { return p.used }

// Idle returns the number of unused packets.
func (p *Pool) Idle() int {
	n := 0
	for _, free := range p.free {
		n += len(free)
	}
	return n
}

// Trim releases a quarter of the packets that stayed unused since the last Trim.
func (p *Pool) Trim() {
	for class := range p.free {
		free := p.free[class]
		keep := len(free) - (p.least[class]+3)/4
		clear(free[keep:])
		p.free[class] = free[:keep]
		p.least[class] = keep
	}
}
