package command

import (
	"fmt"

	"skerry/internal/base/varint"
)

const format = 1

// Codes of conditions and actions are positions in these lists, and must never change.
var (
	checkCodes = []Condition{Exists, Absent, Version, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual}
	writeCodes = []Action{Put, Merge, Add, Delete, CreateTable, DropTable, ClearTable}
)

// Append appends the transaction in binary form:
//
//	format
//	request ID
//	count { code table key version field value }      checks
//	count { code table key value }                    writes
//
// Strings are preceded by their length; lengths, counts and versions are uvarints.
func (t *Transaction) Append(dst []byte) []byte {
	dst = append(dst, format)
	dst = varint.AppendText(dst, t.RequestID)
	dst = varint.Append(dst, uint64(len(t.Checks)))
	for i := range t.Checks {
		c := &t.Checks[i]
		dst = append(dst, encodeCode(checkCodes, c.Is))
		dst = varint.AppendText(dst, c.Table)
		dst = varint.AppendText(dst, c.Key)
		dst = varint.Append(dst, c.Version)
		dst = varint.AppendText(dst, c.Field)
		dst = varint.AppendText(dst, c.Value)
	}
	dst = varint.Append(dst, uint64(len(t.Writes)))
	for i := range t.Writes {
		w := &t.Writes[i]
		dst = append(dst, encodeCode(writeCodes, w.Do))
		dst = varint.AppendText(dst, w.Table)
		dst = varint.AppendText(dst, w.Key)
		dst = varint.AppendText(dst, w.Value)
	}
	return dst
}

func encodeCode[T comparable](list []T, name T) byte {
	for i, n := range list {
		if n == name {
			return byte(i)
		}
	}
	return 255
}

// Decode parses a transaction, whose values refer to data.
func Decode(data []byte) (Transaction, error) {
	r := varint.NewReader(data)
	if f := r.Byte(); f != format && !r.Bad() {
		return Transaction{}, fmt.Errorf("%w: unknown format %d of a newer version", ErrInvalid, f)
	}
	t := Transaction{RequestID: r.Text()}
	t.Checks = make([]Check, 0, r.Count(minPart))
	for range cap(t.Checks) {
		c := Check{Is: decodeCode(&r, checkCodes, r.Byte()), Table: r.Text(), Key: r.Text()}
		c.Version, c.Field, c.Value = r.Number(), r.Text(), readValue(&r)
		t.Checks = append(t.Checks, c)
	}
	t.Writes = make([]Write, 0, r.Count(minPart))
	for range cap(t.Writes) {
		w := Write{Do: decodeCode(&r, writeCodes, r.Byte()), Table: r.Text(), Key: r.Text(), Value: readValue(&r)}
		t.Writes = append(t.Writes, w)
	}
	if !r.Done() {
		return Transaction{}, fmt.Errorf("%w: malformed transaction of %d bytes", ErrInvalid, len(data))
	}
	return t, nil
}

// ChangesTables reports whether an encoded transaction creates or drops tables. Malformed data changes nothing.
func ChangesTables(data []byte) bool {
	if len(data) == 0 || data[0] != format {
		return false
	}
	r := varint.NewReader(data[1:])
	r.Bytes() // the request's ID
	for range r.Count(minPart) {
		r.Byte()
		r.Bytes()
		r.Bytes()
		r.Number()
		r.Bytes()
		r.Bytes()
	}
	for range r.Count(minPart) {
		switch do := decodeCode(&r, writeCodes, r.Byte()); do {
		case CreateTable, DropTable:
			return true
		}
		r.Bytes()
		r.Bytes()
		r.Bytes()
	}
	return false
}

const minPart = 3

func readValue(r *varint.Reader) []byte {
	if b := r.Bytes(); len(b) > 0 {
		return b
	}
	return nil
}

func decodeCode[T ~string](r *varint.Reader, list []T, code byte) T {
	if int(code) >= len(list) {
		r.Fail()
		return ""
	}
	return list[code]
}
