package failure

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
		{io.EOF, EOF, EOF},
		{io.ErrUnexpectedEOF, EOF, EOF},
		{dial(syscall.ECONNRESET), Reset, Reset},
		{dial(syscall.EPIPE), Reset, Reset},
		{dial(syscall.ECONNREFUSED), Refused, Refused},
		{dial(syscall.EHOSTUNREACH), Unreachable, Unreachable},
		{dial(syscall.ETIMEDOUT), Timeout, Connect},
		{os.ErrDeadlineExceeded, Timeout, Connect},
		{context.DeadlineExceeded, Timeout, Connect},
		{context.Canceled, Canceled, Canceled},
		{net.ErrClosed, Canceled, Canceled},
		{errors.New("strange"), Other, Other},
	} {
		err := fmt.Errorf("wrapped: %w", test.err)
		if w, d := Class(err), DialClass(err); w != test.wire || d != test.dia {
			t.Errorf("%v: classes %s and %s, want %s and %s", test.err, w, d, test.wire, test.dia)
		}
	}
}
