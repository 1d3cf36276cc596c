package packet

import (
	"encoding/binary"
	"math/bits"
)

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
