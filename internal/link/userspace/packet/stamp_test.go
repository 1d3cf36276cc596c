package packet

import "testing"

// A stamp comes out as it went in and leaves nothing behind; what stands for many packets keeps its header.
func TestStamp(t *testing.T) {
	b := make([]byte, VnetHeader+20)
	WriteStamp(b, 0xdeadbeef)
	if got := ClearStamp(b); got != 0xdeadbeef {
		t.Errorf("stamp %x", got)
	}
	for i, x := range b {
		if x != 0 {
			t.Errorf("byte %d is %x afterwards", i, x)
		}
	}
	b[vnetGSOType] = gsoTCPv4
	native.PutUint16(b[vnetGSOSize:], 1448)
	WriteStamp(b, 7)
	if got := ClearStamp(b); got != 0 || native.Uint16(b[vnetGSOSize:]) != 1448 {
		t.Errorf("of a super-packet: stamp %d, segments of %d bytes", got, native.Uint16(b[vnetGSOSize:]))
	}
	if got := ClearStamp(b[:5]); got != 0 {
		t.Errorf("of half a header: stamp %d", got)
	}
}
