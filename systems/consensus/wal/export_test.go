package wal

import "encoding/binary"

// WithVersion returns a copy of a segment with another version in its header.
func WithVersion(b []byte, v uint64) []byte {
	r, _ := decodeRecord(b)
	payload := append(binary.LittleEndian.AppendUint64(nil, v), r.payload[8:]...)
	return append(appendBytes(nil, kindSegment, 0, payload), b[r.size:]...)
}
