package packet

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// super builds a super-packet in the form of the kernel.
func super(t testing.TB, kind, version byte, l2, size, data int) *Packet {
	t.Helper()
	ip, transport, checksum := ipHeader(version), 20, tcpChecksum
	proto := byte(protoTCP)
	if kind == gsoUDP {
		transport, checksum, proto = 8, udpChecksum, protoUDP
	}
	n := VnetHeader + l2 + ip + transport + data
	p := NewPool(1 << 20).Get(n)
	b := p.Buffer()
	for i := range b[:n] {
		b[i] = byte(rand.Uint32())
	}
	clear(b[:VnetHeader+l2+ip])
	b[vnetFlags], b[vnetGSOType] = flagNeedsCsum, kind
	native.PutUint16(b[vnetGSOSize:], uint16(size))
	native.PutUint16(b[vnetCsumStart:], uint16(l2+ip))
	native.PutUint16(b[vnetCsumOffset:], uint16(checksum))
	l3 := b[VnetHeader+l2:]
	if version == 4 {
		l3[0], l3[9] = 0x45, proto
		network.PutUint16(l3[ip4Length:], uint16(n-VnetHeader-l2))
		network.PutUint16(l3[ip4ID:], 0xfffe)
		copy(l3[ip4Source:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	} else {
		l3[0], l3[6] = 0x60, proto
		network.PutUint16(l3[ip6Length:], uint16(n-VnetHeader-l2-40))
		l3[8], l3[24] = 0xfd, 0xfd
	}
	l4 := l3[ip:]
	if proto == protoTCP {
		l4[12], l4[tcpFlags] = 5<<4, flagFIN|flagPSH|flagCWR|0x10
		network.PutUint32(l4[tcpSequence:], 0xfffffff0)
	}
	if l2 > 0 {
		network.PutUint16(b[VnetHeader+l2-2:], map[byte]uint16{4: 0x0800, 6: 0x86dd}[version])
	}
	return p
}

func TestCut(t *testing.T) {
	tests := []struct {
		name          string
		kind, version byte
		l2, size      int
		data          int
		segments      int
	}{
		{"tcp over ipv4", gsoTCPv4 | gsoECN, 4, 0, 1448, 10*1448 + 7, 11},
		{"tcp over ipv6", gsoTCPv6, 6, 0, 1428, 3 * 1428, 3},
		{"tcp in frames", gsoTCPv4, 4, etherHeader, 1448, 65000, 45},
		{"udp over ipv4", gsoUDP, 4, 0, 1200, 5000, 5},
		{"udp over ipv6", gsoUDP, 6, etherHeader, 1200, 5000, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := super(t, tt.kind, tt.version, tt.l2, tt.size, tt.data)
			header := ipHeader(tt.version) + 20
			if tt.kind == gsoUDP {
				header = ipHeader(tt.version) + 8
			}
			if !p.Parse(VnetHeader+tt.l2+header+tt.data, tt.l2) {
				t.Fatal("not recognised as an IP packet")
			}
			if p.Segments() != tt.segments {
				t.Fatalf("%d segments, want %d", p.Segments(), tt.segments)
			}
			if want := tt.data + tt.segments*header; p.Wire() != want {
				t.Errorf("%d bytes on the wire, want %d", p.Wire(), want)
			}
			checkCut(t, p, 1)
			checkCut(t, p, 4)
		})
	}
}

// checkCut cuts p into pieces of several segments and checks each piece and their total content.
func checkCut(t testing.TB, p *Packet, step int) {
	t.Helper()
	pool := NewPool(1 << 20)
	var data []byte
	wire := 0
	for i := 0; i < p.Segments(); i += step {
		j := min(i+step, p.Segments())
		dst := pool.Get(p.CutSize(i, j))
		p.Cut(dst, i, j)
		again := &Packet{buf: bytes.Clone(dst.Bytes())}
		if !again.Parse(dst.n, p.l3-VnetHeader) || again.segs != j-i {
			t.Fatalf("piece %d..%d parses as %d segments", i, j, again.segs)
		}
		if again.Wire() != dst.Wire() || again.Wire() != p.WireRange(i, j) {
			t.Fatalf("piece %d..%d: sizes on the wire %d, %d and %d", i, j, again.Wire(), dst.Wire(), p.WireRange(i, j))
		}
		wire += dst.Wire()
		checkHeaders(t, p, dst, i, j)
		data = append(data, dst.buf[dst.payload:dst.n]...)
		pool.Put(dst)
	}
	if wire != p.Wire() {
		t.Errorf("the pieces have %d bytes on the wire, the packet %d", wire, p.Wire())
	}
	if !bytes.Equal(data, p.buf[p.payload:p.n]) {
		t.Error("the pieces do not contain the payload of the packet")
	}
	if pool.Used() != 0 {
		t.Errorf("%d bytes of the pool are still out", pool.Used())
	}
}

func checkHeaders(t testing.TB, whole, piece *Packet, i, j int) {
	t.Helper()
	ip := piece.buf[piece.l3:piece.n]
	if ip[0]>>4 == 4 {
		if got := int(network.Uint16(ip[ip4Length:])); got != len(ip) {
			t.Errorf("piece %d: IP length %d, want %d", i, got, len(ip))
		}
		if foldChecksum(addChecksum(ip[:piece.ipLength()], 0)) != 0xffff {
			t.Errorf("piece %d: IP checksum is wrong", i)
		}
		first := network.Uint16(whole.buf[whole.l3+ip4ID:])
		if got := network.Uint16(ip[ip4ID:]); got != first+uint16(i) {
			t.Errorf("piece %d: IP ID %d, want %d", i, got, first+uint16(i))
		}
	} else if got := int(network.Uint16(ip[ip6Length:])); got != len(ip)-40 {
		t.Errorf("piece %d: IPv6 length %d, want %d", i, got, len(ip)-40)
	}
	l4, was := piece.buf[piece.l4:piece.n], whole.buf[whole.l4:]
	if whole.buf[vnetGSOType]&^gsoECN == gsoUDP {
		if got := int(network.Uint16(l4[udpLength:])); got != len(l4) {
			t.Errorf("piece %d: UDP length %d, want %d", i, got, len(l4))
		}
	} else {
		want := network.Uint32(was[tcpSequence:]) + uint32(i*whole.gso)
		if got := network.Uint32(l4[tcpSequence:]); got != want {
			t.Errorf("piece %d: sequence %d, want %d", i, got, want)
		}
		last, first := j == whole.segs, i == 0
		if fin := l4[tcpFlags]&flagFIN != 0; fin != (last && was[tcpFlags]&flagFIN != 0) {
			t.Errorf("piece %d: FIN is %v", i, fin)
		}
		if cwr := l4[tcpFlags]&flagCWR != 0; cwr != (first && was[tcpFlags]&flagCWR != 0) {
			t.Errorf("piece %d: CWR is %v", i, cwr)
		}
	}
	if piece.segs == 1 {
		full := &Packet{buf: bytes.Clone(piece.Bytes()), n: piece.n, l3: piece.l3, segs: 1}
		full.completeChecksum()
		if !goodChecksum(full, whole.buf[vnetGSOType]&^gsoECN) {
			t.Errorf("piece %d: completed checksum is wrong", i)
		}
	}
}

// goodChecksum verifies TCP or UDP checksums like a receiver.
func goodChecksum(p *Packet, kind byte) bool {
	ip := p.buf[p.l3:p.n]
	header, from, to := p.ipLength(), ip4Source, ip4Source+8
	proto := byte(protoTCP)
	if kind == gsoUDP {
		proto = protoUDP
	}
	if ip[0]>>4 == 6 {
		from, to = ip6Source, ip6Source+32
		header = VnetHeader + int(native.Uint16(p.buf[vnetCsumStart:])) - p.l3
		if header <= 0 {
			header = 40
		}
	}
	return foldChecksum(addChecksum(ip[header:], addChecksum(ip[from:to], uint64(proto)+uint64(len(ip)-header)))) == 0xffff
}

func TestCorruptIsFoundByTheReceiver(t *testing.T) {
	for _, kind := range []byte{gsoTCPv4, gsoUDP} {
		p := super(t, kind, 4, 0, 1000, 3000)
		p.Parse(VnetHeader+20+map[byte]int{gsoTCPv4: 20, gsoUDP: 8}[kind]+3000, 0)
		piece := NewPool(1 << 20).Get(p.CutSize(1, 2))
		for r := range uint64(200) {
			p.Cut(piece, 1, 2)
			whole := bytes.Clone(piece.Bytes())
			piece.Corrupt(r * 0x9e3779b97f4a7c15)
			if goodChecksum(piece, kind) {
				t.Fatalf("kind %d, r %d: the checksum of a corrupted packet is right", kind, r)
			}
			if piece.buf[vnetFlags] != 0 || piece.buf[vnetGSOType] != 0 {
				t.Fatal("the header tells the receiver to skip the checksum")
			}
			if !bytes.Equal(whole[p.l3:p.l4], piece.buf[p.l3:p.l4]) {
				t.Fatal("the IP header was changed")
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name string
		l2   int
		b    []byte
	}{
		{"nothing", 0, nil},
		{"header only", 0, make([]byte, VnetHeader)},
		{"version 5", 0, append(make([]byte, VnetHeader), 0x55)},
		{"ARP", etherHeader, append(append(make([]byte, VnetHeader+12), 8, 6), 0x45)},
	}
	for _, tt := range tests {
		p := &Packet{buf: append(bytes.Clone(tt.b), make([]byte, 100)...)}
		if p.Parse(len(tt.b), tt.l2) {
			t.Errorf("%s was recognised as an IP packet", tt.name)
		}
	}
}

func TestSum(t *testing.T) {
	b := make([]byte, 1500)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	for n := range b {
		var want uint32
		for i := 0; i < n; i += 2 {
			word := [2]byte{b[i]}
			if i+1 < n {
				word[1] = b[i+1]
			}
			want += uint32(binary.BigEndian.Uint16(word[:]))
			want = want>>16 + want&0xffff
		}
		if got := foldChecksum(addChecksum(b[:n], 0)); uint32(got) != want {
			t.Fatalf("sum over %d bytes is %#x, want %#x", n, got, want)
		}
	}
	if got := foldChecksum(^uint64(0)); got != 0xffff {
		t.Errorf("fold of the largest sum is %#x", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, kind := range []byte{gsoTCPv4, gsoUDP} {
		p := super(f, kind, 4, 0, 500, 1600)
		f.Add(p.buf[:VnetHeader+40+1600], false)
	}
	p := super(f, gsoTCPv6, 6, etherHeader, 500, 1600)
	f.Add(p.buf[:VnetHeader+14+60+1600], true)
	f.Fuzz(func(t *testing.T, b []byte, frames bool) {
		l2 := 0
		if frames {
			l2 = etherHeader
		}
		p := &Packet{buf: bytes.Clone(b)}
		if !p.Parse(len(b), l2) {
			return
		}
		if p.Segments() == 1 {
			p.Corrupt(uint64(len(b)) * 0x9e3779b97f4a7c15)
			return
		}
		if len(b) <= Largest {
			checkCut(t, p, 1)
			checkCut(t, p, 3)
		}
	})
}
