package packet

import (
	"bytes"
)

// A super-packet travels to another machine as a train: its segments one behind the other, each with its own
// headers. All but the last have the same length, so that systems can carry them together. If a segment is
// lost, the others still arrive.
//
//	super-packet ──Train──► | vnet, IP, TCP, payload | ... | vnet, IP, TCP, rest | ──Join──► super-packet

// Train writes segments of p from number i on into b, as far as they fit, limited to most. It returns the bytes of each
// segment but the last, the number of the first segment left out, and the bytes written.
func (p *Packet) Train(b []byte, i, most int) (size, next, all int) {
	size = p.payload + p.gso
	for next = i; next < p.segs && next-i < most && all+size <= len(b); next++ {
		one := Packet{buf: b[all:]}
		p.Cut(&one, next, next+1)
		all += one.n
	}
	return size, next, all
}

// trainHeader describes the common layout of the segments of one super-packet.
type trainHeader struct {
	l4, payload int
	data        int // payload bytes of every segment but the last
}

// parseTrainHeader parses b, the first packet of a train. ok is false if Join must not merge it.
func parseTrainHeader(b []byte) (c trainHeader, ok bool) {
	if len(b) < VnetHeader+20 || b[vnetFlags] != flagNeedsCsum || b[vnetGSOType] != gsoNone ||
		int(native.Uint16(b[vnetCsumOffset:])) != tcpChecksum {
		return c, false
	}
	ip := b[VnetHeader:]
	c.l4 = VnetHeader + int(native.Uint16(b[vnetCsumStart:]))
	switch ip[0] >> 4 {
	case 4:
		ok = c.l4 == VnetHeader+int(ip[0]&15)*4 && c.l4 >= VnetHeader+20 && ip[9] == protoTCP
	case 6:
		ok = c.l4 == VnetHeader+40 && ip[6] == protoTCP
	}
	if !ok || len(b) < c.l4+20 {
		return c, false
	}
	c.payload = c.l4 + int(b[c.l4+12]>>4)*4
	c.data = len(b) - c.payload
	const alone = flagFIN | flagSYN | flagRST | flagPSH | flagURG // flags that a first segment does not have
	return c, c.payload >= c.l4+20 && c.data > 0 && b[c.l4+tcpFlags]&alone == 0
}

// continues reports whether b is the n-th packet after the first one of a train.
func (c trainHeader) continues(first, b []byte, n int) bool {
	if len(b) <= c.payload || !bytes.Equal(first[:VnetHeader], b[:VnetHeader]) {
		return false
	}
	ip, tcp, is, its := first[VnetHeader:c.l4], first[c.l4:c.payload], b[VnetHeader:c.l4], b[c.l4:c.payload]
	if ip[0]>>4 == 4 {
		if !bytes.Equal(ip[:ip4Length], is[:ip4Length]) || !bytes.Equal(ip[ip4ID+2:ip4Checksum], is[ip4ID+2:ip4Checksum]) ||
			!bytes.Equal(ip[ip4Source:], is[ip4Source:]) || network.Uint16(is[ip4ID:]) != network.Uint16(ip[ip4ID:])+uint16(n) ||
			int(network.Uint16(is[ip4Length:])) != len(b)-VnetHeader {
			return false
		}
	} else if !bytes.Equal(ip[:ip6Length], is[:ip6Length]) || !bytes.Equal(ip[ip6Length+2:], is[ip6Length+2:]) ||
		int(network.Uint16(is[ip6Length:])) != len(b)-VnetHeader-40 {
		return false
	}
	return bytes.Equal(tcp[:tcpSequence], its[:tcpSequence]) && bytes.Equal(tcp[tcpSequence+4:tcpFlags], its[tcpSequence+4:tcpFlags]) &&
		network.Uint32(its[tcpSequence:]) == network.Uint32(tcp[tcpSequence:])+uint32(n*c.data) &&
		tcp[tcpFlags]&^flagCWR == its[tcpFlags]&^(flagFIN|flagPSH) &&
		bytes.Equal(tcp[tcpFlags+1:tcpChecksum], its[tcpFlags+1:tcpChecksum]) && bytes.Equal(tcp[tcpChecksum+2:], its[tcpChecksum+2:])
}

// JoinableLength returns how many bytes of the train b, of packets of size bytes, form one super-packet
// or one packet.
func JoinableLength(b []byte, size int) int {
	size = min(size, len(b))
	c, ok := parseTrainHeader(b[:size])
	if !ok {
		return size
	}
	first, all := b[:size], size
	for n := 1; all < len(b); n++ {
		one := b[all:min(all+size, len(b))]
		if !c.continues(first, one, n) || c.payload-VnetHeader+(n+1)*c.data > 1<<16-1 {
			break
		}
		all += len(one)
		if len(one) < size || one[c.l4+tcpFlags]&(flagFIN|flagPSH) != 0 {
			break // last segment
		}
	}
	return all
}

// Join fills p with the segments b of size bytes each, as found by JoinableLength, or with the single
// packet b. It reports whether b is an IP packet.
func (p *Packet) Join(b []byte, size int) bool {
	if len(b) <= size {
		return p.Parse(copy(p.buf, b), 0)
	}
	c, _ := parseTrainHeader(b[:size])
	p.n = copy(p.buf, b[:size])
	last := b[:size]
	for b = b[size:]; len(b) > 0; b = b[len(last):] {
		last = b[:min(size, len(b))]
		p.n += copy(p.buf[p.n:], last[c.payload:])
	}
	p.l3, p.l4, p.payload, p.gso = VnetHeader, c.l4, c.payload, c.data
	p.segs = (p.n - p.payload + p.gso - 1) / p.gso
	h := p.buf
	h[vnetGSOType] = gsoTCPv4
	if h[p.l3]>>4 == 6 {
		h[vnetGSOType] = gsoTCPv6
	}
	if h[p.l4+tcpFlags]&flagCWR != 0 {
		h[vnetGSOType] |= gsoECN
	}
	native.PutUint16(h[vnetGSOSize:], uint16(p.gso))
	h[p.l4+tcpFlags] |= last[p.l4+tcpFlags] & (flagFIN | flagPSH)
	p.fixIP(0)
	network.PutUint16(h[p.l4+tcpChecksum:], p.pseudo(protoTCP))
	return true
}

// A packet to another machine carries its due time. It is stored in the super-packet fields of the
// virtio_net_hdr (hdr_len and gso_size), because no super-packet is sent there.

// WriteStamp writes a number into b, which begins with a virtio_net_hdr, unless b is a super-packet.
func WriteStamp(b []byte, s uint32) {
	if b[vnetGSOType] == gsoNone {
		native.PutUint32(b[vnetHdrLen:], s)
	}
}

// ClearStamp removes the number from b and returns it; 0 means none.
func ClearStamp(b []byte) (s uint32) {
	if len(b) < VnetHeader || b[vnetGSOType] != gsoNone {
		return 0
	}
	s = native.Uint32(b[vnetHdrLen:])
	native.PutUint32(b[vnetHdrLen:], 0)
	return s
}
