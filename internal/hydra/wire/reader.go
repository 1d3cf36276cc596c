package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// bufferSize is how much of what the other side has sent one read brings.
const bufferSize = 32 << 10

// Reader takes frames from a connection. It is for one goroutine.
type Reader struct {
	r    *bufio.Reader
	long []byte // a frame that is longer than r's buffer
}

// NewReader reads from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, bufferSize)}
}

// Next returns the content of the next frame, which is good until the call after it.
func (r *Reader) Next() ([]byte, error) {
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
	r.long = make([]byte, n)
	_, err = io.ReadFull(r.r, r.long)
	return r.long, cut(err)
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
