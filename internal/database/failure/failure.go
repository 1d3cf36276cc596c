// Package failure names what can go wrong with a connection to a database, for the clients
// of package database: one word for each kind of failure, the same for every database.
package failure

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Classes of failures of a connection.
const (
	Refused     = "refused"     // nobody listens
	Unreachable = "unreachable" // no route
	Connect     = "connect_timeout"
	Timeout     = "timeout" // sent, no answer in time
	Reset       = "reset"   // ended by the other side's system
	EOF         = "eof"     // ended by the other side
	Canceled    = "canceled"
	Other       = "error"
)

// Class names the failure of a connection that was open.
func Class(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return Canceled
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return EOF
	}
	return Other
}

// DialClass names a failure to connect: nothing was sent.
func DialClass(err error) string {
	if c := Class(err); c != Timeout {
		return c
	}
	return Connect
}
