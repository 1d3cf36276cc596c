package packet

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
