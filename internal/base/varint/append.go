// Package varint is how records and frames are made of their parts without a schema: numbers
// as unsigned varints (base 128, little-endian, as in encoding/binary), texts with their
// length as such a number before them, and single bytes. What a record consists of, and
// which version of it, is known to the package whose record it is.
package varint

import "encoding/binary"

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
