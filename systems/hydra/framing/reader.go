package framing

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"skerry/internal/base/bodylimit"
)

// bufferSize is how much of what the other side has sent one read brings.
const bufferSize = 32 << 10

// Reader takes frames from a connection. It is for one goroutine.
type Reader struct {
	r *bufio.Reader
	// room is what long frames of all readers hold together, and deadline bounds the arrival of
	// one that has begun; nil for a reader that trusts the other side.
	room     *bodylimit.Room
	deadline func(time.Time) error
	patience time.Duration

	held int64 // of room, for the frame that Next has returned
	long bool  // it is longer than r's buffer
}

// NewReader reads from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, bufferSize)}
}

// Within bounds what long frames hold until they are given back, by what all of a room do, and how
// long one may take to arrive that has begun, by what sets its connection's deadline (the zero time
// for none).
func (r *Reader) Within(room *bodylimit.Room, patience time.Duration, deadline func(time.Time) error) *Reader {
	r.room, r.patience, r.deadline = room, patience, deadline
	return r
}

// Long tells whether the frame that Next has returned is the caller's to keep, and how much of
// the room it has then to give back.
func (r *Reader) Long() (held int64, long bool) { return r.held, r.long }

// Next returns the content of the next frame, which is good until the call after it where it is
// not Long.
func (r *Reader) Next() ([]byte, error) {
	r.held, r.long = 0, false
	head, err := r.r.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(head))
	if n > MaxFrame {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrFrame, n, MaxFrame)
	}
	if n <= bufferSize-4 {
		b, err := r.r.Peek(4 + n)
		if err != nil {
			return nil, cut(err)
		}
		_, _ = r.r.Discard(4 + n) // it was peeked at
		return b[4:], nil
	}
	_, _ = r.r.Discard(4)
	r.long = true
	return r.grow(int64(n))
}

// grow reads a long frame as it comes.
func (r *Reader) grow(n int64) (b []byte, err error) {
	if r.room == nil {
		b, _, err = bodylimit.NewRoom(2*MaxFrame).Read(r.r, n)
		return b, err
	}
	if err := r.deadline(time.Now().Add(r.patience)); err != nil {
		return nil, err
	}
	b, r.held, err = r.room.Read(r.r, n)
	if err == nil {
		err = r.deadline(time.Time{})
	}
	return b, err
}

// cut tells an end within a frame from one behind it.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// More tells whether a whole frame is there already.
func (r *Reader) More() bool {
	n := r.r.Buffered()
	if n < 4 {
		return false
	}
	head, err := r.r.Peek(4)
	return err == nil && n-4 >= int(binary.LittleEndian.Uint32(head))
}
