package mysql

import (
	"net"
	"syscall"
)

// stream is the connection below the driver's. It remembers what ended it, which the
// driver reports as "invalid connection", and has deadlines set on it for an operation.
type stream struct {
	socket
	err error
}

// socket is a connection by which the driver looks whether it is alive: TCP, or what stands for it where the node is
// on another machine.
type socket interface {
	net.Conn
	syscall.Conn
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.socket.Read(b)
	if err != nil {
		s.err = err
	}
	return n, err
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.socket.Write(b)
	if err != nil {
		s.err = err
	}
	return n, err
}
