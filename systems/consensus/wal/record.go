package wal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"go.etcd.io/raft/v3/raftpb"
)

// A record, little-endian, begins at a multiple of 8 bytes:
//
//	 0      4      8        12     13      16         24
//	┌──────┬──────┬────────┬──────┬───────┬──────────┬─────────┬───────┐
//	│magic │CRC32C│ length │ kind │ zeros │  synced  │ payload │ zeros │
//	└──────┴──────┴────────┴──────┴───────┴──────────┴─────────┴───────┘
//
// The checksum covers everything after itself up to the payload's end. synced is the number of bytes of the segment that
// were durable when the record was written. It distinguishes a torn tail from damage: records after a bad one may be the
// rest of a torn write, unless their synced proves that the bad record was durable.
const (
	magic      = 0x4c41574b // "KWAL"
	headerSize = 24
	align      = 8
	// maxPayload is beyond what any entry has; a longer length is damage.
	maxPayload = 256 << 20
)

type kind uint8

const (
	// kindSegment begins a segment: the format's version and a segmentHeader.
	kindSegment kind = iota + 1
	// kindEntry is a raft entry: index, term, type, data.
	kindEntry
	// kindHard is a raft hard state: term, vote, commit.
	kindHard
	// kindConf is a Conf in JSON.
	kindConf
	// kindTruncate drops all entries after an index: index, its term.
	kindTruncate
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const version = 1

// segmentHeader makes a segment readable without those before it.
type segmentHeader struct {
	Cluster string `json:"cluster"`
	ID      uint64 `json:"id"`
	Seq     uint64 `json:"seq"`
	Base    bool   `json:"base,omitempty"`
	// PrevIndex and PrevTerm are of the entry before the segment's first.
	PrevIndex uint64 `json:"prev_index"`
	PrevTerm  uint64 `json:"prev_term"`
	Hard      hard   `json:"hard"`
	Confs     []Conf `json:"confs"`
}

type hard struct {
	Term   uint64 `json:"term"`
	Vote   uint64 `json:"vote"`
	Commit uint64 `json:"commit"`
}

// Conf is the membership from an index on, in the words of the log's owner.
type Conf struct {
	Index uint64          `json:"index"`
	Data  json.RawMessage `json:"data"`
}

func paddedSize(n int) int { return (n + align - 1) &^ (align - 1) }

func beginRecord(b []byte, k kind, synced int64) []byte {
	b = binary.LittleEndian.AppendUint32(b, magic)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, byte(k), 0, 0, 0)
	return binary.LittleEndian.AppendUint64(b, uint64(synced))
}

func finishRecord(b []byte, start int) []byte {
	end := len(b)
	binary.LittleEndian.PutUint32(b[start+8:], uint32(end-start-headerSize))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(b[start+8:end], castagnoli))
	var zeros [align]byte
	return append(b, zeros[:paddedSize(end-start)-(end-start)]...)
}

func appendEntry(b []byte, e *raftpb.Entry, synced int64) []byte {
	start := len(b)
	b = beginRecord(b, kindEntry, synced)
	b = binary.LittleEndian.AppendUint64(b, e.GetIndex())
	b = binary.LittleEndian.AppendUint64(b, e.GetTerm())
	b = append(b, byte(e.GetType()))
	b = append(b, e.GetData()...)
	return finishRecord(b, start)
}

func appendNumbers(b []byte, k kind, synced int64, numbers ...uint64) []byte {
	start := len(b)
	b = beginRecord(b, k, synced)
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return finishRecord(b, start)
}

func appendBytes(b []byte, k kind, synced int64, parts ...[]byte) []byte {
	start := len(b)
	b = beginRecord(b, k, synced)
	for _, p := range parts {
		b = append(b, p...)
	}
	return finishRecord(b, start)
}

// record is a decoded record. Its payload refers to the buffer that it was read from.
type record struct {
	kind    kind
	synced  int64
	payload []byte
	size    int64 // on disk, with header and padding
}

// decodeRecord reads the record at the beginning of b. It returns false if there is no valid one.
func decodeRecord(b []byte) (record, bool) {
	if len(b) < headerSize || binary.LittleEndian.Uint32(b) != magic {
		return record{}, false
	}
	n := binary.LittleEndian.Uint32(b[8:])
	if n > maxPayload || headerSize+int(n) > len(b) {
		return record{}, false
	}
	end := headerSize + int(n)
	if crc32.Checksum(b[8:end], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return record{}, false
	}
	synced := int64(binary.LittleEndian.Uint64(b[16:]))
	return record{kind: kind(b[12]), synced: synced, payload: b[headerSize:end], size: int64(paddedSize(end))}, true
}

// provesDamage searches after a bad record at offset for a record that was written after the bad one was durable.
func provesDamage(b []byte, offset int64) bool {
	var mark [4]byte
	binary.LittleEndian.PutUint32(mark[:], magic)
	for at := offset + align; at < int64(len(b)); {
		i := bytes.Index(b[at:], mark[:])
		if i < 0 {
			return false
		}
		at += int64(i)
		if r, ok := decodeRecord(b[at:]); ok && at%align == 0 && r.synced > offset {
			return true
		}
		at++
	}
	return false
}

func (r record) numbers(n int) ([]uint64, error) {
	if len(r.payload) != 8*n {
		return nil, fmt.Errorf("record of kind %d has %d bytes, not %d", r.kind, len(r.payload), 8*n)
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(r.payload[8*i:])
	}
	return out, nil
}

func (r record) entry() (*raftpb.Entry, error) {
	if r.kind != kindEntry || len(r.payload) < 17 || r.payload[16] > byte(raftpb.EntryConfChangeV2) {
		return nil, fmt.Errorf("record of kind %d and %d bytes is not an entry", r.kind, len(r.payload))
	}
	e := &raftpb.Entry{
		Index: new(binary.LittleEndian.Uint64(r.payload)),
		Term:  new(binary.LittleEndian.Uint64(r.payload[8:])),
		Type:  raftpb.EntryType(r.payload[16]).Enum(),
	}
	if len(r.payload) > 17 {
		e.Data = bytes.Clone(r.payload[17:])
	}
	return e, nil
}
