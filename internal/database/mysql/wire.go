package mysql

import (
	"net"
	"syscall"
)

// stream is the connection below the driver's. It remembers what ended it, which the
// driver reports as "invalid connection", and has deadlines set on it for an operation.
type stream struct {
	*net.TCPConn
	err error
}

var _ syscall.Conn = (*stream)(nil) // the driver looks whether the connection is alive by it

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.TCPConn.Read(b)
	if err != nil {
		s.err = err
	}
	return n, err
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.TCPConn.Write(b)
	if err != nil {
		s.err = err
	}
	return n, err
}
