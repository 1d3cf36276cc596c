// Package varint encodes the parts of records and frames without a schema: numbers as unsigned varints (as in
// encoding/binary), texts with their length as a varint in front, and single bytes. The package that owns a record
// defines its parts and its version.
package varint

import (
	"encoding/binary"
)

// Reader parses a record from its front. After the first missing or invalid part the Reader is bad: it is empty and
// returns zero for every further part. The caller reads the whole record and then checks Bad or Done once.
type Reader struct {
	rest []byte
	bad  bool
}

func NewReader(b []byte) Reader { return Reader{rest: b} }

// Fail makes the Reader bad, for a part with an invalid value.
func (r *Reader) Fail() { r.rest, r.bad = nil, true }

// Bad reports whether a part was missing or invalid.
func (r *Reader) Bad() bool { return r.bad }

// Rest returns the unread bytes without consuming them.
func (r *Reader) Rest() []byte { return r.rest }

// More reports whether unread bytes are left.
func (r *Reader) More() bool { return len(r.rest) > 0 }

// Done reports whether every part was valid and no bytes are left.
func (r *Reader) Done() bool { return !r.bad && len(r.rest) == 0 }

// Byte reads a single byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Number reads a number. A number of more than 64 bits is invalid.
func (r *Reader) Number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// Count reads the number of following parts, each of at least size bytes. A count that exceeds the unread bytes is
// invalid, so that the caller does not allocate memory for it.
func (r *Reader) Count(size int) int {
	n := r.Number()
	if n > uint64(len(r.rest)/size) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Bytes reads a text. The result shares memory with the record, with a capacity that keeps append from overwriting the
// record. An empty text is not nil.
func (r *Reader) Bytes() []byte {
	n := r.Number()
	if n > uint64(len(r.rest)) {
		r.Fail()
		return nil
	}
	text := r.rest[:n:n]
	r.rest = r.rest[n:]
	return text
}

func (r *Reader) Text() string { return string(r.Bytes()) }

func Append(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// AppendText appends the length of a text and the text.
func AppendText[T ~string | ~[]byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
