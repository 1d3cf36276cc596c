package packet

import (
	"encoding/binary"
	"math/bits"
)

var network = binary.BigEndian

// Offsets of the header fields that differ between segments.
const (
	ip4Length, ip4ID, ip4Checksum, ip4Source = 2, 4, 10, 12
	ip6Length, ip6Source                     = 4, 8

	tcpSequence, tcpFlags, tcpChecksum = 4, 13, 16
	udpLength, udpChecksum             = 4, 6

	flagFIN, flagSYN, flagRST, flagPSH, flagURG, flagCWR = 0x01, 0x02, 0x04, 0x08, 0x20, 0x80

	protoTCP, protoUDP = 6, 17
)

// CutSize returns the buffer size that Cut needs for segments i to j-1.
func (p *Packet) CutSize(i, j int) int { return p.payload + p.span(j) - p.span(i) }

// Cut copies segments i to j-1 of the super-packet p to dst: a single packet or a smaller super-packet.
// Checksums stay incomplete, as in p.
func (p *Packet) Cut(dst *Packet, i, j int) {
	from, to := p.span(i), p.span(j)
	copy(dst.buf, p.buf[:p.payload])
	size := copy(dst.buf[p.payload:], p.buf[p.payload+from:p.payload+to])
	dst.n, dst.l3, dst.l4, dst.payload, dst.gso = p.payload+size, p.l3, p.l4, p.payload, p.gso
	dst.segs = j - i

	b := dst.buf
	native.PutUint16(b[vnetHdrLen:], uint16(p.payload-VnetHeader))
	if i > 0 {
		b[vnetGSOType] &^= gsoECN
	}
	kind := b[vnetGSOType] &^ gsoECN
	if dst.segs == 1 {
		b[vnetGSOType] = gsoNone
		native.PutUint16(b[vnetGSOSize:], 0)
	}
	dst.fixIP(i)
	if kind == gsoUDP {
		network.PutUint16(b[p.l4+udpLength:], uint16(dst.n-p.l4))
		network.PutUint16(b[p.l4+udpChecksum:], dst.pseudo(protoUDP))
		return
	}
	sequence := network.Uint32(b[p.l4+tcpSequence:])
	network.PutUint32(b[p.l4+tcpSequence:], sequence+uint32(from))
	if j < p.segs {
		b[p.l4+tcpFlags] &^= flagFIN | flagPSH
	}
	if i > 0 {
		b[p.l4+tcpFlags] &^= flagCWR
	}
	network.PutUint16(b[p.l4+tcpChecksum:], dst.pseudo(protoTCP))
}

// fixIP updates the IP header of p, which begins at segment i of its super-packet.
func (p *Packet) fixIP(i int) {
	ip := p.buf[p.l3:p.l4]
	if ip[0]>>4 == 6 {
		network.PutUint16(ip[ip6Length:], uint16(p.n-p.l3-40))
		return
	}
	network.PutUint16(ip[ip4Length:], uint16(p.n-p.l3))
	network.PutUint16(ip[ip4ID:], network.Uint16(ip[ip4ID:])+uint16(i))
	network.PutUint16(ip[ip4Checksum:], 0)
	network.PutUint16(ip[ip4Checksum:], ^foldChecksum(addChecksum(ip, 0)))
}

// pseudo returns the sum of the pseudo header, which the checksum field holds until it is completed.
func (p *Packet) pseudo(proto byte) uint16 {
	ip := p.buf[p.l3:p.l4]
	addresses := ip[ip4Source : ip4Source+8]
	if ip[0]>>4 == 6 {
		addresses = ip[ip6Source : ip6Source+32]
	}
	return foldChecksum(addChecksum(addresses, uint64(proto)+uint64(p.n-p.l4)))
}

func (p *Packet) Copy(dst *Packet) {
	copy(dst.buf, p.buf[:p.n])
	buf, class := dst.buf, dst.class
	*dst = *p
	dst.buf, dst.class = buf, class
}

func (p *Packet) Size() int { return p.n }

// Corrupt flips the bit selected by r behind the IP header of a single packet. It completes the checksum
// first, so that the receiver detects the damage.
func (p *Packet) Corrupt(r uint64) {
	p.completeChecksum()
	clear(p.buf[:VnetHeader])
	target := p.buf[p.l3+p.ipLength() : p.n]
	if len(target) == 0 {
		target = p.buf[p.l3:p.n]
	}
	bit := r % uint64(len(target)*8)
	target[bit/8] ^= 1 << (bit % 8)
}

// ipLength returns the length of the IP header without IPv6 extensions, limited to the packet.
func (p *Packet) ipLength() int {
	ip := p.buf[p.l3:p.n]
	if ip[0]>>4 == 6 {
		return min(40, len(ip))
	}
	return min(int(ip[0]&15)*4, len(ip))
}

// completeChecksum computes a checksum that the sender left to the device.
func (p *Packet) completeChecksum() {
	if p.buf[vnetFlags]&flagNeedsCsum == 0 {
		return
	}
	start := VnetHeader + int(native.Uint16(p.buf[vnetCsumStart:]))
	field := start + int(native.Uint16(p.buf[vnetCsumOffset:]))
	if start < p.l3 || field+2 > p.n {
		return
	}
	c := ^foldChecksum(addChecksum(p.buf[start:p.n], 0))
	if c == 0 {
		c = 0xffff // 0 would mean "no checksum" in UDP; both are equal
	}
	network.PutUint16(p.buf[field:], c)
}

// addChecksum adds b to start as 16-bit words in network order, with carries (RFC 1071). The sum may use
// wider words and be folded at the end.
func addChecksum(b []byte, start uint64) uint64 {
	s, carry := start, uint64(0)
	for len(b) >= 8 {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var tail [8]byte
	copy(tail[:], b)
	s, carry = bits.Add64(s, binary.BigEndian.Uint64(tail[:]), carry)
	s, carry = bits.Add64(s, 0, carry)
	return s + carry
}

// foldChecksum reduces a sum to 16 bits.
func foldChecksum(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>16&0xffff + s&0xffff + s>>32
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}
