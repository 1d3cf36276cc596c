package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestClass(t *testing.T) {
	dial := func(e syscall.Errno) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", e)} }
	for _, test := range []struct {
		err       error
		wire, dia string
	}{
		{io.EOF, ClassEOF, ClassEOF},
		{io.ErrUnexpectedEOF, ClassEOF, ClassEOF},
		{dial(syscall.ECONNRESET), ClassReset, ClassReset},
		{dial(syscall.EPIPE), ClassReset, ClassReset},
		{dial(syscall.ECONNREFUSED), ClassRefused, ClassRefused},
		{dial(syscall.EHOSTUNREACH), ClassUnreachable, ClassUnreachable},
		{dial(syscall.ETIMEDOUT), ClassTimeout, ClassConnectTimeout},
		{os.ErrDeadlineExceeded, ClassTimeout, ClassConnectTimeout},
		{context.DeadlineExceeded, ClassTimeout, ClassConnectTimeout},
		{context.Canceled, ClassCanceled, ClassCanceled},
		{net.ErrClosed, ClassCanceled, ClassCanceled},
		{errors.New("strange"), ClassOther, ClassOther},
	} {
		err := fmt.Errorf("wrapped: %w", test.err)
		if w, d := ErrorClass(err), DialErrorClass(err); w != test.wire || d != test.dia {
			t.Errorf("%v: classes %s and %s, want %s and %s", test.err, w, d, test.wire, test.dia)
		}
	}
}
