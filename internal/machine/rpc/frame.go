package rpc

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// Kind is what a frame of a process's answer holds.
type Kind byte

// The kinds.
const (
	Out   Kind = 1 // what it wrote to its standard output
	Err   Kind = 2 // to its standard error
	Ended Kind = 3 // a Failure, or nothing where it ended with 0; it is the last
)

// maxFrame bounds a frame, in bytes.
const maxFrame = 1 << 20

// Frames writes frames. Its methods may be called from several goroutines.
type Frames struct {
	mu sync.Mutex
	to io.Writer
	// flush has what was written leave.
	flush func() error
}

// NewFrames writes to w, and flushes after each frame.
func NewFrames(w io.Writer, flush func() error) *Frames { return &Frames{to: w, flush: flush} }

// Send writes a frame.
func (f *Frames) Send(k Kind, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(len(data)))
	if _, err := f.to.Write(append(head, data...)); err != nil {
		return err
	}
	return f.flush()
}

// Writer makes frames of a kind of what is written to it.
func (f *Frames) Writer(k Kind) io.Writer { return frameWriter{f, k} }

type frameWriter struct {
	frames *Frames
	kind   Kind
}

func (w frameWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		piece := b[:min(len(b), maxFrame)]
		if err := w.frames.Send(w.kind, piece); err != nil {
			return n, err
		}
		n += len(piece)
		b = b[len(piece):]
	}
	return n, nil
}

// ReadFrame reads the next one.
func ReadFrame(r io.Reader) (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes, and %d are the most", size, maxFrame)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, err
	}
	return Kind(head[0]), data, nil
}
