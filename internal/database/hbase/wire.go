package hbase

import (
	"encoding/binary"
	"errors"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Operations and statuses of the protocol of bridge/Request.java and bridge/Reply.java.
const (
	opRead       = 1
	opScan       = 2
	opWrite      = 3
	opDelete     = 4
	opAdminister = 5

	statusOK      = 0
	statusMissing = 1
	statusFailed  = 2
	statusUnknown = 3
)

const (
	// frameHead is the size of a request's head: length, id, operation and milliseconds left.
	frameHead = 4 + 8 + 1 + 4
	// replyHead is the size of a reply's head without the length: id, status and retries.
	replyHead = 8 + 1 + 2
	// maxReply bounds what a reply may claim to hold.
	maxReply = 1 << 30
)

var errProtocol = errors.New("bad reply of the bridge")

// newFrame begins a request; finishFrame completes it.
func newFrame(b []byte, op byte) []byte {
	b = append(b[:0], make([]byte, frameHead)...)
	b[12] = op
	return b
}

func finishFrame(b []byte, id uint64, milliseconds int32) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	binary.BigEndian.PutUint64(b[4:], id)
	binary.BigEndian.PutUint32(b[13:], uint32(milliseconds))
}

// appendName appends a name with its length, cut to the maximum, which no table, key or field reaches.
func appendName(b []byte, s string) []byte {
	s = s[:min(len(s), 1<<16-1)]
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

func appendValue[T string | []byte](b []byte, v T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}

type decoder struct {
	b   []byte
	err error
}

func (d *decoder) next(n int) []byte {
	if n < 0 || n > len(d.b) {
		if d.err == nil {
			d.err = fmt.Errorf("%w: it ends early", errProtocol)
		}
		d.b = nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint16() int {
	if b := d.next(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (d *decoder) uint32() int {
	if b := d.next(4); b != nil {
		return int(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) name() []byte  { return d.next(d.uint16()) }
func (d *decoder) value() []byte { return d.next(d.uint32()) }

// record appends a record's fields. Values refer to the buffer.
func (d *decoder) record(dst []load.Field, names *database.FieldNames) []load.Field {
	for i, n := 0, d.uint16(); i < n && d.err == nil; i++ {
		name, value := d.name(), d.value()
		if d.err == nil {
			dst = append(dst, load.Field{Name: names.String(i, name), Value: value})
		}
	}
	return dst
}

func (d *decoder) lines() ([]string, error) {
	var lines []string
	for i, n := 0, d.uint32(); i < n && d.err == nil; i++ {
		lines = append(lines, string(d.value()))
	}
	return lines, d.err
}

type reply struct {
	status  byte
	retries int
	body    []byte
}

func parseReply(b []byte) (reply, error) {
	if len(b) < replyHead {
		return reply{}, fmt.Errorf("%w: %d bytes", errProtocol, len(b))
	}
	return reply{status: b[8], retries: int(binary.BigEndian.Uint16(b[9:])), body: b[replyHead:]}, nil
}

// err returns the error of a reply, nil for success.
func (r reply) err() error {
	switch r.status {
	case statusOK:
		return nil
	case statusMissing:
		return load.ErrNotFound
	}
	d := decoder{b: r.body}
	class, server, message := string(d.name()), string(d.name()), string(d.name())
	if d.err != nil {
		return d.err
	}
	if r.status == statusFailed {
		return load.Failed(class, server, errors.New(message))
	}
	return load.Unknown(class, server, errors.New(message))
}
