package relay

import (
	"net"
	"testing"
)

// Silent is the address of a server which takes connections, as the kernel does for a process
// that is stopped, and never answers, until the test's end.
func Silent(t testing.TB) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}
