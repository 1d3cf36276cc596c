package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Conn combines two streams of bytes to a connection.
type Conn struct {
	in     *bufio.Reader
	closer func() error
	out    io.Writer
	gone   chan struct{}
	once   sync.Once
	err    error
}

var _ net.Conn = (*Conn)(nil)

// NewConn returns a connection that reads in and writes out. Close interrupts a pending Read or Write.
func NewConn(in io.ReadCloser, out io.WriteCloser) *Conn {
	return &Conn{
		in: bufio.NewReader(in), out: out, gone: make(chan struct{}),
		closer: func() error { return errors.Join(out.Close(), in.Close()) },
	}
}

// ReadLine reads a line of at most so many bytes.
func (c *Conn) ReadLine(most int) (string, error) {
	var line []byte
	for {
		b, err := c.in.ReadByte()
		if err != nil {
			return string(line), err
		}
		if b == '\n' {
			return string(line), nil
		}
		if line = append(line, b); len(line) > most {
			return string(line), bufio.ErrTooLong
		}
	}
}

func (c *Conn) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *Conn) Write(b []byte) (int, error) { return c.out.Write(b) }

func (c *Conn) Close() error {
	c.once.Do(func() {
		c.err = c.closer()
		close(c.gone)
	})
	return c.err
}

func (c *Conn) Closed() <-chan struct{} { return c.gone }

// Addresses are placeholders.
func (c *Conn) LocalAddr() net.Addr  { return pipe{} }
func (c *Conn) RemoteAddr() net.Addr { return pipe{} }

// Deadlines are unnecessary: HTTP/2 sends pings.
func (c *Conn) SetDeadline(time.Time) error      { return nil }
func (c *Conn) SetReadDeadline(time.Time) error  { return nil }
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

type pipe struct{}

func (pipe) Network() string { return "pipe" }
func (pipe) String() string  { return "agent" }

// Kind of a frame in a process's response.
type Kind byte

const (
	Out   Kind = 1 // its standard output
	Err   Kind = 2 // to its standard error
	Ended Kind = 3 // a Failure, or nothing where it ended with 0; it is the last
)

// maxFrame bounds a frame, in bytes.
const maxFrame = 1 << 20

// Frames writes frames. It is safe for concurrent use.
type Frames struct {
	mu    sync.Mutex
	to    io.Writer
	flush func() error
}

// NewFrames returns a writer that flushes after each frame.
func NewFrames(w io.Writer, flush func() error) *Frames { return &Frames{to: w, flush: flush} }

func (f *Frames) Send(k Kind, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(len(data)))
	if _, err := f.to.Write(append(head, data...)); err != nil {
		return err
	}
	return f.flush()
}

// Writer returns a writer that sends frames of a kind.
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

func ReadFrame(r io.Reader) (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, nil, fmt.Errorf("frame of %d bytes exceeds the limit of %d", size, maxFrame)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, err
	}
	return Kind(head[0]), data, nil
}
