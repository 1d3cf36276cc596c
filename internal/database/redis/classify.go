package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"skerry/internal/load"
)

// Classes of errors. Those that Redis itself reports are its own words in lower case:
// "clusterdown", "loading", "readonly", "oom", "wrongtype", ...
const (
	classMoved       = "moved" // redirected more often than allowed
	classRefused     = "refused"
	classUnreachable = "unreachable"
	classTimeout     = "timeout"
	classConnect     = "connect_timeout"
	classEOF         = "eof"
	classReset       = "reset"
	classCanceled    = "canceled"
	classOther       = "error"
)

// replyError is an error that Redis reported. Redis did not carry the command out.
func replyError(addr string, text []byte) error {
	word, _, _ := strings.Cut(string(text), " ")
	class := classOther
	if word != "ERR" && word != "" && word == strings.ToUpper(word) {
		class = strings.ToLower(word)
	}
	return load.Failed(class, addr, errors.New(string(text)))
}

// dialClass classifies a failure to connect.
func dialClass(err error) string {
	if c := wireClass(err); c != classTimeout {
		return c
	}
	return classConnect
}

// wireClass classifies a failure of a connection.
func wireClass(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return classCanceled
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &timeout) && timeout.Timeout():
		return classTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return classRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return classUnreachable
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return classReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return classEOF
	}
	return classOther
}
