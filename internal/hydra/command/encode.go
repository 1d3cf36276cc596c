package command

import (
	"encoding/binary"
	"fmt"
)

// format is the first byte of an encoded transaction.
const format = 1

// codes of checks and writes in the log, which must never change.
var (
	checkCodes = []Is{Exists, Absent, Version, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual}
	writeCodes = []Do{Put, Merge, Add, Delete, CreateTable, DropTable, ClearTable}
)

// Append appends a transaction in its binary form:
//
//	format
//	request ID
//	count { code table key version field value }      checks
//	count { code table key value }                    writes
//
// Texts are preceded by their length; lengths, counts and versions are uvarints.
func (t *Transaction) Append(dst []byte) []byte {
	dst = append(dst, format)
	dst = appendText(dst, t.RequestID)
	dst = binary.AppendUvarint(dst, uint64(len(t.Checks)))
	for i := range t.Checks {
		c := &t.Checks[i]
		dst = append(dst, codeOf(checkCodes, c.Is))
		dst = appendText(dst, c.Table)
		dst = appendText(dst, c.Key)
		dst = binary.AppendUvarint(dst, c.Version)
		dst = appendText(dst, c.Field)
		dst = appendText(dst, c.Value)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.Writes)))
	for i := range t.Writes {
		w := &t.Writes[i]
		dst = append(dst, codeOf(writeCodes, w.Do))
		dst = appendText(dst, w.Table)
		dst = appendText(dst, w.Key)
		dst = appendText(dst, w.Value)
	}
	return dst
}

func appendText[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// codeOf is a name's place in its list, 255 for none: Normalize refuses those.
func codeOf[T comparable](list []T, name T) byte {
	for i, n := range list {
		if n == name {
			return byte(i)
		}
	}
	return 255
}

// Decode reads a transaction. Its values refer to data.
func Decode(data []byte) (Transaction, error) {
	d := decoder{rest: data}
	if f := d.byte(); f != format && !d.bad {
		return Transaction{}, fmt.Errorf("%w: format %d is not known: a newer version wrote it", ErrInvalid, f)
	}
	t := Transaction{RequestID: string(d.text())}
	t.Checks = make([]Check, 0, d.count())
	for range cap(t.Checks) {
		c := Check{Is: nameOf(&d, checkCodes), Table: string(d.text()), Key: string(d.text())}
		c.Version, c.Field, c.Value = d.uvarint(), string(d.text()), d.text()
		t.Checks = append(t.Checks, c)
	}
	t.Writes = make([]Write, 0, d.count())
	for range cap(t.Writes) {
		w := Write{Do: nameOf(&d, writeCodes), Table: string(d.text()), Key: string(d.text()), Value: d.text()}
		t.Writes = append(t.Writes, w)
	}
	if d.bad || len(d.rest) > 0 {
		return Transaction{}, fmt.Errorf("%w: %d bytes that are no transaction", ErrInvalid, len(data))
	}
	return t, nil
}

// decoder reads what Append wrote and remembers whether something was wrong.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) fail() { d.bad, d.rest = true, nil }

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count is a number of parts, none of which takes less than three bytes.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)/3) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) text() []byte {
	n := d.uvarint()
	if n == 0 || d.bad {
		return nil
	}
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func nameOf[T ~string](d *decoder, list []T) T {
	code := d.byte()
	if int(code) >= len(list) {
		d.fail()
		return ""
	}
	return list[code]
}
