package database

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
	ClassRefused        = "refused"     // nobody listens
	ClassUnreachable    = "unreachable" // no route
	ClassConnectTimeout = "connect_timeout"
	ClassTimeout        = "timeout" // sent, no answer in time
	ClassReset          = "reset"   // ended by the other side's system
	ClassEOF            = "eof"     // ended by the other side
	ClassCanceled       = "canceled"
	ClassOther          = "error"
)

// ErrorClass names the failure of a connection that was open.
func ErrorClass(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return ClassCanceled
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &timeout) && timeout.Timeout():
		return ClassTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return ClassRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return ClassUnreachable
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ClassReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ClassEOF
	}
	return ClassOther
}

// DialErrorClass names a failure to connect: nothing was sent.
func DialErrorClass(err error) string {
	if c := ErrorClass(err); c != ClassTimeout {
		return c
	}
	return ClassConnectTimeout
}
