// Package framing implements the stream of Hydra's interface: reads and transactions as binary frames on one connection,
// pipelined and answered in order of completion. A stream starts as an HTTP upgrade,
//
//	GET /v1/stream HTTP/1.1            HTTP/1.1 101 Switching Protocols
//	Connection: Upgrade          ─►    Connection: Upgrade
//	Upgrade: hydra-stream/1            Upgrade: hydra-stream/1
//
// and so shares the interface's address, TLS and tokens. A frame is a length (4 bytes, little-endian) and its content:
//
//	get       id 1 timeout read staleness table key
//	transact  id 2 timeout ack transaction            the rest of the frame
//
//	row       id 1 applied lag age cloud version value      the rest of the frame
//	written   id 2 version ack
//	problem   id 3 problem                            as JSON, the rest of the frame
//	elsewhere id 4                                    not done: repeat over HTTP
//
// Strings are preceded by their length; lengths, numbers and identifiers are uvarints. Timeouts and staleness are in ms;
// ages are in µs plus one (0: unknown). Kinds, reads and acknowledgements are one byte.
//
// Outbox combines the frames of many goroutines into few writes, and one read returns many
// frames. At 240 requests in flight this is several times less work than HTTP requests.
package framing

import (
	"encoding/binary"
	"errors"
	"time"

	"skerry/internal/base/varint"
)

// Protocol is the name in the Upgrade header, Path where the stream begins.
const (
	Protocol = "hydra-stream/1"
	Path     = "/v1/stream"
)

// MaxFrame is the maximum size of a frame in bytes: the largest request and its overhead.
const MaxFrame = 4<<20 + 4<<10

// ErrFrame marks malformed bytes; the rest of the stream is unreadable.
var ErrFrame = errors.New("malformed frame")

// Operation is the kind of a request.
type Operation byte

const (
	Get Operation = iota + 1
	Transact
)

// Request is the frame of a request. Read and Ack are positions in api.Reads and api.Acks.
type Request struct {
	ID          uint64
	Operation   Operation
	Timeout     time.Duration // 0: the member's own
	Read        byte
	Staleness   time.Duration
	Table, Key  []byte
	Ack         byte
	Transaction []byte // command.Transaction.Append
}

// Kind is the kind of an answer.
type Kind byte

const (
	Row Kind = iota + 1
	Written
	Problem
	Elsewhere
)

// Answer is the frame of an answer.
type Answer struct {
	ID      uint64
	Kind    Kind
	Version uint64 // of Row and Written
	// Of Row. Age is negative if unknown.
	Applied, Lag uint64
	Age          time.Duration
	Cloud, Value []byte
	Ack          byte   // of Written
	Problem      []byte // JSON
}

func AppendRequest(b []byte, q *Request) []byte {
	b, at := begin(b)
	b = append(varint.Append(b, q.ID), byte(q.Operation))
	b = varint.Append(b, milliseconds(q.Timeout))
	switch q.Operation {
	case Get:
		b = varint.Append(append(b, q.Read), milliseconds(q.Staleness))
		b = varint.AppendText(varint.AppendText(b, q.Table), q.Key)
	case Transact:
		b = append(append(b, q.Ack), q.Transaction...)
	}
	return end(b, at)
}

func AppendAnswer(b []byte, a *Answer) []byte {
	b, at := begin(b)
	b = append(varint.Append(b, a.ID), byte(a.Kind))
	switch a.Kind {
	case Row:
		age := uint64(0)
		if a.Age >= 0 {
			age = uint64(a.Age.Microseconds()) + 1
		}
		b = varint.AppendText(varint.Append(b, a.Applied, a.Lag, age), a.Cloud)
		b = append(varint.Append(b, a.Version), a.Value...)
	case Written:
		b = append(varint.Append(b, a.Version), a.Ack)
	case Problem:
		b = append(b, a.Problem...)
	}
	return end(b, at)
}

func begin(b []byte) ([]byte, int) { return append(b, 0, 0, 0, 0), len(b) }

func end(b []byte, at int) []byte {
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// milliseconds rounds up, so that a short deadline does not become none.
func milliseconds(d time.Duration) uint64 {
	return uint64(max(0, d+time.Millisecond-1) / time.Millisecond)
}

// DecodeRequest decodes a request's frame; the result refers to b.
func DecodeRequest(b []byte) (Request, error) {
	r := varint.NewReader(b)
	q := Request{ID: r.Number(), Operation: Operation(r.Byte()), Timeout: duration(&r, time.Millisecond)}
	whole := false
	switch q.Operation {
	case Get:
		q.Read, q.Staleness = r.Byte(), duration(&r, time.Millisecond)
		q.Table, q.Key = r.Bytes(), r.Bytes()
		whole = r.Done()
	case Transact:
		q.Ack, q.Transaction = r.Byte(), r.Rest()
		whole = !r.Bad()
	}
	if !whole {
		return Request{}, ErrFrame
	}
	return q, nil
}

// DecodeAnswer decodes an answer's frame; the result refers to b.
func DecodeAnswer(b []byte) (Answer, error) {
	r := varint.NewReader(b)
	a := Answer{ID: r.Number(), Kind: Kind(r.Byte())}
	whole := false
	switch a.Kind {
	case Row:
		a.Applied, a.Lag = r.Number(), r.Number()
		a.Age = duration(&r, time.Microsecond) - time.Microsecond
		a.Cloud, a.Version = r.Bytes(), r.Number()
		a.Value = r.Rest()
		whole = !r.Bad()
	case Written:
		a.Version, a.Ack = r.Number(), r.Byte()
		whole = r.Done()
	case Problem:
		a.Problem = r.Rest()
		whole = !r.Bad()
	case Elsewhere:
		whole = r.Done()
	}
	if !whole {
		return Answer{}, ErrFrame
	}
	return a, nil
}

const maxDuration = 365 * 24 * time.Hour

func duration(r *varint.Reader, unit time.Duration) time.Duration {
	n := r.Number()
	if n > uint64(maxDuration/unit) {
		r.Fail()
		return 0
	}
	return time.Duration(n) * unit
}
