package rpc

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Conn is two streams of bytes as a connection. Close closes both.
type Conn struct {
	in     *bufio.Reader
	closer func() error
	out    io.Writer
	gone   chan struct{}
	once   sync.Once
	err    error
}

var _ net.Conn = (*Conn)(nil)

// NewConn joins what is read and what is written. Closing either ends a Read or Write that waits.
func NewConn(in io.ReadCloser, out io.WriteCloser) *Conn {
	return &Conn{
		in: bufio.NewReader(in), out: out, gone: make(chan struct{}),
		closer: func() error { return errors.Join(out.Close(), in.Close()) },
	}
}

// Line reads up to the end of a line, of so many bytes at most.
func (c *Conn) Line(most int) (string, error) {
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

// Close ends the connection. It may be called again.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.err = c.closer()
		close(c.gone)
	})
	return c.err
}

// Gone is closed with the connection.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// LocalAddr and RemoteAddr are names alone.
func (c *Conn) LocalAddr() net.Addr  { return pipe{} }
func (c *Conn) RemoteAddr() net.Addr { return pipe{} }

// Deadlines are not needed: HTTP/2 asks for a sign of life by itself.
func (c *Conn) SetDeadline(time.Time) error      { return nil }
func (c *Conn) SetReadDeadline(time.Time) error  { return nil }
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

type pipe struct{}

func (pipe) Network() string { return "pipe" }
func (pipe) String() string  { return "agent" }
