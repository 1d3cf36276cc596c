// Package varint is how records and frames are made of their parts without a schema: numbers
// as unsigned varints (base 128, little-endian, as in encoding/binary), texts with their
// length as such a number before them, and single bytes. What a record consists of, and
// which version of it, is known to the package whose record it is.
package varint

import (
	"encoding/binary"
)

// Reader takes the parts of a record off its front. After the first part that is not there
// it is bad: nothing is left, and every part is zero. So a record is read as a whole, and
// then asked once whether it was one.
type Reader struct {
	rest []byte
	bad  bool
}

// NewReader reads b.
func NewReader(b []byte) Reader { return Reader{rest: b} }

// Fail makes it bad, where a part is there and cannot be meant.
func (r *Reader) Fail() { r.rest, r.bad = nil, true }

// Bad tells whether a part was not there.
func (r *Reader) Bad() bool { return r.bad }

// Rest is what has not been read, which stays unread.
func (r *Reader) Rest() []byte { return r.rest }

// More tells whether there is anything left to read.
func (r *Reader) More() bool { return len(r.rest) > 0 }

// Done tells whether every part was there, and nothing is behind the last.
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

// Number reads a number. One of more than 64 bits is none.
func (r *Reader) Number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// Count reads how many parts follow, each of at least size bytes: more than there is room
// for are not there, so that nobody makes room for them.
func (r *Reader) Count(size int) int {
	n := r.Number()
	if n > uint64(len(r.rest)/size) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Bytes reads a text. It is a part of what is read, and appending to it does not write
// there; an empty one is not nil.
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

// Text reads a text as a string of its own.
func (r *Reader) Text() string { return string(r.Bytes()) }

// Append appends numbers.
func Append(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// AppendText appends a text, its length before it.
func AppendText[T ~string | ~[]byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
