package server_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"skerry/systems/metadata/server"
)

// TestStalledRequests starts requests that announce a large body and stall. They occupy only the bytes received.
// Excess requests are refused, small ones are served, and a request whose client leaves frees its memory.
func TestStalledRequests(t *testing.T) {
	s, addr := begin(t, server.Options{MaxBodies: 4 << 20, Patience: 10 * time.Minute})
	const clients = 64
	var stalled []net.Conn
	for range clients {
		stalled = append(stalled, stall(t, addr))
	}
	holds(t, s, "all requests have arrived", func(held int64) bool { return held >= clients*(16<<10) })
	if s.BodyBytes() > 2*clients*sent {
		t.Errorf("%d bytes are held, of %d that came", s.BodyBytes(), clients*sent)
	}
	text := "write /f '" + strings.Repeat("y", 7<<19)
	for _, path := range []string{"/", "/v1/batch"} {
		resp, err := http.Post("http://"+addr+path, "text/plain", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if why, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a request beyond the memory limit: %s %s", resp.Status, why)
		}
		resp.Body.Close()
	}
	if _, status := post(t, addr, "mkdir /a"); status != http.StatusOK {
		t.Errorf("a small request: status %d", status)
	}
	for _, c := range stalled {
		c.Close()
	}
	holds(t, s, "no memory is held", func(held int64) bool { return held == 0 })
}

// TestSlowClientTimeout stalls a request beyond the server's patience: it frees its memory, and its connection
// ends.
func TestSlowClientTimeout(t *testing.T) {
	s, addr := begin(t, server.Options{Patience: 100 * time.Millisecond})
	c := stall(t, addr)
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of a stalled request stays open: %v", err)
	}
	holds(t, s, "no memory is held", func(held int64) bool { return held == 0 })
}

// sent is the number of bytes sent of a stalled request.
const sent = 20 << 10

// stall sends the start of a request.
func stall(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: m\r\nContent-Length: %d\r\n\r\n%s", 8<<20, strings.Repeat("x", sent)); err != nil {
		t.Fatal(err)
	}
	return c
}

// holds waits until the memory used by bodies satisfies ok.
func holds(t *testing.T, s *server.Server, what string, ok func(held int64) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(s.BodyBytes()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting until %s: %d bytes are held", what, s.BodyBytes())
		}
	}
}
