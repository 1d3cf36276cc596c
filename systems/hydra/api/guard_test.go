package api

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"skerry/systems/hydra/framing"
)

// TestRefusedStalls sends request heads that are refused before their body is read, and never sends the body.
// The server must still close the connection.
func TestRefusedStalls(t *testing.T) {
	s := New(Config{Member: "a1", Patience: 100 * time.Millisecond, Timeout: 100 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, ended := s.HTTP(nil), make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	defer func() { h.Close(); <-ended }()
	for _, head := range []string{"Host: rebound.example\r\n", "Host: localhost\r\nOrigin: null\r\n"} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "POST /v1/tables/t/clear HTTP/1.1\r\n"+head+"Content-Length: 100\r\n\r\nx"); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(c); err != nil {
			t.Errorf("%q: %q, %v", head, text, err)
		}
	}
}

// TestForeign sends requests and stream upgrades as a browser does for pages of other sites, and for foreign
// host names. None of them may reach the member, which is nil here.
func TestForeign(t *testing.T) {
	s := New(Config{Member: "a1"})
	stream := http.Header{"Connection": {"Upgrade"}, "Upgrade": {framing.Protocol}, "Origin": {"http://evil.example"}}
	for what, c := range map[string]struct {
		method, path, host string
		header             http.Header
		status             int
		code               string
	}{
		"a table cleared": {"POST", "/v1/tables/t/clear", "127.0.0.1:7070", http.Header{"Origin": {"http://evil.example"}}, 403,
			CodeForbidden},
		"a member added": {"POST", "/v1/members", "localhost", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403, CodeForbidden},
		"null origin":    {"POST", "/v1/members", "localhost", http.Header{"Origin": {"null"}}, 403, CodeForbidden},
		"a stream":       {"GET", framing.Path, "localhost:7070", stream, 403, CodeForbidden},
		"a preflight": {"OPTIONS", "/v1/tables/t", "localhost",
			http.Header{"Origin": {"http://evil.example"}, "Access-Control-Request-Method": {"PUT"}}, 403, CodeForbidden},
		"rows by a name":       {"GET", "/v1/tables/t/rows", "rebound.example:7070", nil, 421, CodeForeignHost},
		"health by a name":     {"GET", "/healthz", "rebound.example:7070", nil, 421, CodeForeignHost},
		"health":               {"GET", "/healthz", "[::1]:7070", nil, 200, ""},
		"health from own page": {"GET", "/healthz", "localhost:7070", http.Header{"Sec-Fetch-Site": {"none"}}, 200, ""},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Host = c.host
		if c.header != nil {
			r.Header = c.header
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || p.Code != c.code {
			t.Errorf("%s: %d %s, %v", what, w.Code, w.Body, err)
		}
	}
}
