package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"skerry/internal/system/metadata/server"
)

// TestStalled has requests begin that announce much and stall: they hold what has come of them and
// no more, whichever way of reading requests meets them; one too many at once is refused, what is
// small is served, and what stalls leaves its room.
func TestStalled(t *testing.T) {
	s, addr := begin(t, server.Options{MaxBodies: 4 << 20, Patience: 10 * time.Second})
	const clients, sent = 64, 20 << 10
	for i := range clients {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		head := "POST / HTTP/1.1\r\nHost: m\r\n" + []string{"", "X-Unknown: 1\r\n"}[i%2]
		if _, err := fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, 8<<20, strings.Repeat("x", sent)); err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, ok func(held int64) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !ok(s.Held()); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain until %s: %d bytes are held", what, s.Held())
			}
		}
	}
	until("all have come", func(held int64) bool { return held >= clients*(16<<10) })
	if s.Held() > 2*clients*sent {
		t.Errorf("%d bytes are held, of %d that came", s.Held(), clients*sent)
	}
	text := "write /f '" + strings.Repeat("y", 7<<19)
	for _, path := range []string{"/", "/v1/batch"} {
		resp, err := http.Post("http://"+addr+path, "text/plain", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if why, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("more than there is room for: %s %s", resp.Status, why)
		}
		resp.Body.Close()
	}
	if _, status := ask(t, addr, "mkdir /a"); status != http.StatusOK {
		t.Errorf("a small one: %d", status)
	}
	until("nothing is held", func(held int64) bool { return held == 0 })
}
