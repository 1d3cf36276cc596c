package packet

// A packet that goes to another machine says when it is due there: in what a virtio_net_hdr has for
// super-packets (hdr_len and gso_size), which none is that goes there.

// WriteStamp writes a number into b, which begins with a virtio_net_hdr; of a super-packet it writes nothing.
func WriteStamp(b []byte, s uint32) {
	if b[vnetGSOType] == gsoNone {
		native.PutUint32(b[vnetHdrLen:], s)
	}
}

// ClearStamp takes the number out of b, and returns it; 0 where there is none.
func ClearStamp(b []byte) (s uint32) {
	if len(b) < VnetHeader || b[vnetGSOType] != gsoNone {
		return 0
	}
	s = native.Uint32(b[vnetHdrLen:])
	native.PutUint32(b[vnetHdrLen:], 0)
	return s
}
