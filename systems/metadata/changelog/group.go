package changelog

import (
	"encoding/binary"
	"hash/crc32"
)

// castagnoli is the polynomial of CRC32C, which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// groupHeader is the bytes before a group's records: checksum of what follows (4),
	// length of the records (4), index of the first (8), all little-endian.
	groupHeader = 16
	// MaxRecord is the most bytes of a record.
	MaxRecord = 16 << 20
	// fullGroup is where a group takes no more records.
	groupLimit = 4 << 20
	// maxGroup is the most bytes of the records of a group.
	maxGroup = groupLimit + MaxRecord + binary.MaxVarintLen64
)

// beginGroup makes room for the header.
func beginGroup(b []byte) []byte { return append(b[:0], make([]byte, groupHeader)...) }

// addRecord appends a record, with its length before it.
func addRecord(b, record []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(record))), record...)
}

// endGroup fills in the header.
func endGroup(b []byte, first uint64) {
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-groupHeader))
	binary.LittleEndian.PutUint64(b[8:], first)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
}

// group is a group that was read.
type group struct {
	first   uint64
	records [][]byte
	size    int // bytes, header included
}

// readGroup reads the group at the beginning of b; ok is false where there is none, or a
// broken one.
func readGroup(b []byte) (g group, ok bool) {
	if len(b) < groupHeader {
		return g, false
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if n == 0 || n > maxGroup || int(n) > len(b)-groupHeader {
		return g, false
	}
	b = b[:groupHeader+int(n)]
	if crc32.Checksum(b[4:], castagnoli) != binary.LittleEndian.Uint32(b) {
		return g, false
	}
	g = group{first: binary.LittleEndian.Uint64(b[8:]), size: len(b)}
	for b = b[groupHeader:]; len(b) > 0; {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return g, false
		}
		g.records = append(g.records, b[size:size+int(n)])
		b = b[size+int(n):]
	}
	return g, true
}

// containsGroup tells whether a whole group of a record behind index begins anywhere in b.
func containsGroup(b []byte, index uint64) bool {
	for at := range b {
		if len(b)-at < groupHeader {
			return false
		}
		first := binary.LittleEndian.Uint64(b[at+8:])
		if first <= index || first > index+1<<32 {
			continue
		}
		if _, ok := readGroup(b[at:]); ok {
			return true
		}
	}
	return false
}
