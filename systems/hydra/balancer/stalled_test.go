package balancer

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestStalled has requests begin that never end: they keep none of those that are whole from a
// backend or the queue, and are given up. More at once than there is room for is refused.
func TestStalled(t *testing.T) {
	m := newMember(t, "m1")
	c := quick()
	c.Members, c.Limit, c.Queue, c.MaxBodies, c.Arrival = []Backend{{m.URL, "home"}}, 1, 0, 1<<20, 5*time.Second
	b, at, _ := start(t, c)
	begin := func(head string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\n"+head); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	stalled := begin(fmt.Sprintf("Content-Length: 800000\r\n\r\n%s", strings.Repeat("x", 700<<10)))
	for range 4 {
		begin("Content-Length: 4000\r\n\r\n{")
		begin("Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
	}
	until(t, "the large one takes its room", func() bool { return b.room.Held() > 600<<10 })
	for range 20 {
		if status, _, text := do(t, http.MethodPost, at+"/v1/transactions", "k", "{}"); status != http.StatusOK {
			t.Fatalf("a whole request: %d %s", status, text)
		}
	}
	if status, h, text := do(t, http.MethodPost, at+"/v1/transactions", "k", strings.Repeat("x", 700<<10)); status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("more than there is room for: %d %s", status, text)
	}
	if text, _ := io.ReadAll(stalled); !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
		t.Errorf("what stalled was answered with %.200q", text)
	}
	until(t, "nothing is held", func() bool { return b.room.Held() == 0 })
	if m.served.Load() != 20 {
		t.Errorf("the backend has served %d", m.served.Load())
	}
}
