package packet

import "encoding/binary"

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
