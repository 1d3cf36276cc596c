package metadata

import (
	"encoding/binary"
	"errors"

	"skerry/internal/base/varint"
)

// ErrRecord marks bytes that are not a command's.
var ErrRecord = errors.New("not a command's record")

// recordVersion is the first byte of every record.
const recordVersion = 1

// Bits of the flags in a record.
const (
	flagParents = 1 << iota
	flagRecursive
	flagReplace
	flagExclusive
	flagAcross
	flagIdentity
)

// AppendRecord appends a changing command as journals hold it:
//
//	version, op, flags (a byte each), mode (2 bytes), time (8 bytes), all little-endian,
//	then path, to, owner and data, each with its length (uvarint) before it, and of a command
//	with an identity that, too, and seen (uvarint)
func (c Command) AppendRecord(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{c.Parents, c.Recursive, c.Replace, c.Exclusive, c.Across, c.Identity != ""} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, recordVersion, byte(c.Op), flags)
	b = binary.LittleEndian.AppendUint16(b, c.Mode)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Time))
	b = varint.AppendText(b, c.Path)
	b = varint.AppendText(b, c.To)
	b = varint.AppendText(b, c.Owner)
	b = varint.AppendText(b, c.Data)
	if c.Identity != "" {
		b = varint.Append(varint.AppendText(b, c.Identity), c.Seen)
	}
	return b
}

// ParseRecord reads what AppendRecord wrote. Data is part of b.
func ParseRecord(b []byte) (Command, error) {
	const fixed = 3 + 2 + 8
	if len(b) < fixed || b[0] != recordVersion {
		return Command{}, ErrRecord
	}
	c := Command{Op: Op(b[1]), MaxDepth: -1}
	c.Parents, c.Recursive, c.Replace, c.Exclusive = b[2]&flagParents != 0, b[2]&flagRecursive != 0, b[2]&flagReplace != 0, b[2]&flagExclusive != 0
	c.Across = b[2]&flagAcross != 0
	c.Mode = binary.LittleEndian.Uint16(b[3:])
	c.Time = int64(binary.LittleEndian.Uint64(b[5:]))
	r := varint.NewReader(b[fixed:])
	c.Path, c.To, c.Owner, c.Data = r.Text(), r.Text(), r.Text(), r.Bytes()
	if b[2]&flagIdentity != 0 {
		c.Identity, c.Seen = r.Text(), r.Number()
	}
	if !r.Done() || !c.Op.Changes() {
		return Command{}, ErrRecord
	}
	if len(c.Data) == 0 {
		c.Data = nil
	}
	return c, nil
}

// AppendBatch appends changing commands as one record: each with its length (uvarint)
// before it. They become durable together.
func AppendBatch(b []byte, commands []Command) []byte {
	var one []byte
	for _, c := range commands {
		one = c.AppendRecord(one[:0])
		b = varint.AppendText(b, one)
	}
	return b
}

// ParseBatch calls do for the commands of what AppendBatch wrote, in order.
func ParseBatch(b []byte, do func(Command)) error {
	for r := varint.NewReader(b); r.More(); {
		c, err := ParseRecord(r.Bytes())
		if err != nil {
			return err
		}
		do(c)
	}
	return nil
}
