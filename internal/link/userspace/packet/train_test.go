package packet

import (
	"bytes"
	"slices"
	"testing"
)

// A super-packet sent as a train is joined again. With missing packets, the remaining pieces are joined, and packets of
// other streams do not change.
func TestTrain(t *testing.T) {
	for name, c := range map[string]struct {
		kind, version byte
		size, data    int
	}{
		"tcp over ipv4":          {gsoTCPv4, 4, 1400, 60000},
		"congestion experienced": {gsoTCPv4 | gsoECN, 4, 1400, 3 * 1400},
		"tcp over ipv6":          {gsoTCPv6, 6, 1300, 5*1300 + 1},
		"udp, not joined":        {gsoUDP, 4, 1200, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			p := super(t, c.kind, c.version, 0, c.size, c.data)
			header := 20
			if c.kind == gsoUDP {
				header = 8
			}
			if !p.Parse(VnetHeader+ipHeader(c.version)+header+c.data, 0) {
				t.Fatal("not recognised as an IP packet")
			}
			if c.kind&gsoECN == 0 && c.kind != gsoUDP { // as the kernel marks it
				p.buf[p.l4+tcpFlags] &^= flagCWR
			}
			whole := NewPool(1 << 20).Get(p.n)
			p.Cut(whole, 0, p.segs) // with checksums
			b := make([]byte, 1<<17)
			size, next, all := p.Train(b, 0, p.segs)
			if next != p.segs || all != p.Wire()+p.segs*VnetHeader {
				t.Fatalf("a train of %d packets and %d bytes, want %d and %d", next, all, p.segs, p.Wire()+p.segs*VnetHeader)
			}
			if c.kind == gsoUDP {
				if got := JoinableLength(b[:all], size); got != size {
					t.Errorf("%d bytes are one packet, want %d", got, size)
				}
				return
			}
			if got := pieces(t, b[:all], size); len(got) != 1 || !bytes.Equal(got[0].Bytes(), whole.Bytes()) ||
				got[0].Segments() != p.segs || got[0].Wire() != p.Wire() {
				t.Errorf("joined to %d pieces, want one identical packet", len(got))
			}
			lost := slices.Delete(slices.Clone(b[:all]), size, 2*size)
			if got := pieces(t, lost, size); len(got) != min(p.segs-1, 2) || got[0].Segments() != 1 {
				t.Errorf("joined to %d pieces without the second packet", len(got))
			}
			for _, at := range []int{VnetHeader + 1, p.l4, p.l4 + 9, p.l4 + 14} { // type of service, port, acknowledgement, window
				other := slices.Clone(b[:all])
				other[size+at]++
				if got := JoinableLength(other, size); got != size {
					t.Errorf("byte %d of the second packet differs, but %d bytes were joined", at, got)
				}
			}
			if got, next, all := p.Train(b[:2*size], 1, p.segs); got != size || next != min(3, p.segs) || all > 2*size {
				t.Errorf("with space for two packets: joined up to packet %d, %d bytes", next, all)
			}
		})
	}
}

// pieces returns the packets that a train is joined to.
func pieces(t *testing.T, b []byte, size int) (all []*Packet) {
	t.Helper()
	pool := NewPool(1 << 22)
	for len(b) > 0 {
		n := JoinableLength(b, size)
		k := pool.Get(n)
		if !k.Join(b[:n], size) {
			t.Fatal("the result is not an IP packet")
		}
		all, b = append(all, k), b[n:]
	}
	return all
}

// Any input is joined to one or more packets, none of them longer than the input.
func FuzzJoin(f *testing.F) {
	p := super(f, gsoTCPv4, 4, 0, 100, 1000)
	p.Parse(VnetHeader+40+1000, 0)
	b := make([]byte, 1<<12)
	size, _, all := p.Train(b, 0, p.segs)
	f.Add(b[:all], size)
	f.Add([]byte{1}, 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size <= 0 {
			return
		}
		for len(b) > 0 {
			n := JoinableLength(b, size)
			if n <= 0 || n > len(b) {
				t.Fatalf("%d of %d bytes are one packet", n, len(b))
			}
			k := NewPool(1 << 20).Get(min(n, Largest))
			if n <= Largest && k.Join(b[:n], size) && k.Size() > n {
				t.Fatalf("%d bytes are joined to %d", n, k.Size())
			}
			b = b[n:]
		}
	})
}

// A stamp is read back unchanged and removed completely; a super-packet keeps its header.
func TestStamp(t *testing.T) {
	b := make([]byte, VnetHeader+20)
	WriteStamp(b, 0xdeadbeef)
	if got := ClearStamp(b); got != 0xdeadbeef {
		t.Errorf("stamp %x", got)
	}
	for i, x := range b {
		if x != 0 {
			t.Errorf("byte %d is %x after the stamp was removed", i, x)
		}
	}
	b[vnetGSOType] = gsoTCPv4
	native.PutUint16(b[vnetGSOSize:], 1448)
	WriteStamp(b, 7)
	if got := ClearStamp(b); got != 0 || native.Uint16(b[vnetGSOSize:]) != 1448 {
		t.Errorf("super-packet: stamp %d, segments of %d bytes", got, native.Uint16(b[vnetGSOSize:]))
	}
	if got := ClearStamp(b[:5]); got != 0 {
		t.Errorf("truncated header: stamp %d", got)
	}
}
