// Package audit knows every write of a drive and tells, of what is read later, what should not
// be: acknowledged writes that are gone, values that nobody wrote.
//
// Every value carries the version of the write that made it. A Ledger keeps, for each field of
// each record, the versions that it may have in the end; a Record judges what was read.
//
//	      w1 ├──┤ acknowledged
//	             w2 ├────┤ acknowledged: began when w1 had ended, so w1 is history
//	                w3 ├──────┤ acknowledged, beside w2: either may be last
//	              w4 ├─────── ? in doubt: may or may not be there, now or later
//	──────────────────────────────────────► time      allowed: w2, w3, w4
package audit

import (
	"fmt"
	"hash/crc32"
)

// Version names a write: the worker that did it and its number there, from 1. 0 is the load.
type Version uint64

const (
	sequenceBits = 31
	workerBits   = 17
	maxSequence  = 1<<sequenceBits - 1
	maxWorker    = 1<<workerBits - 1
)

// TagSize is how many bytes of a value its version takes: 8 digits of the version and 6 of a
// checksum of all else, 6 bits each, so that a value stays text.
const TagSize = 14

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"

// digitOf is the value of a digit, 0xFF for any other byte.
var digitOf = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xFF
	}
	for i := range len(digits) {
		t[digits[i]] = byte(i)
	}
	return t
}()

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is over what a value is of, its version, and what follows the tag: a value that was
// cut, mixed up with another field's or damaged has another.
func checksum(number int64, field int, v Version, rest []byte) uint32 {
	const odd = 0x9e3779b97f4a7c15 // Fibonacci hashing: its high bits depend on all of the factor
	of := (uint64(number)*odd ^ uint64(v)<<8 ^ uint64(field)) * odd
	return crc32.Update(0, castagnoli, rest) ^ uint32(of>>32)
}

// writeTag puts a version into the first TagSize bytes of a value.
func writeTag(value []byte, number int64, field int, v Version) {
	tag := value[:TagSize]
	encodeDigits(tag[:8], uint64(v))
	encodeDigits(tag[8:], uint64(checksum(number, field, v, value[TagSize:])))
}

// encodeDigits writes a number in as many digits as b has.
func encodeDigits(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = digits[n&63]
		n >>= 6
	}
}

func decodeDigits(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		d := digitOf[c]
		if d == 0xFF {
			return 0, false
		}
		n = n<<6 | uint64(d)
	}
	return n, true
}

// readTag returns a value's version; not ok where it is none of this record's field.
func readTag(value []byte, number int64, field int) (Version, bool) {
	if len(value) < TagSize {
		return 0, false
	}
	v, ok := decodeDigits(value[:8])
	sum, okSum := decodeDigits(value[8:TagSize])
	return Version(v), ok && okSum && sum == uint64(checksum(number, field, Version(v), value[TagSize:]))
}

// String is the version as findings have it: "worker.number".
func (v Version) String() string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%d.%d", v>>sequenceBits, v&maxSequence)
}
