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

// TestForeign sends requests for foreign host names and from pages of other sites. Requests that the balancer
// accepts must reach a backend, which knows neither the balancer's names nor its pages, as requests to itself.
func TestForeign(t *testing.T) {
	m, app := newMember(t, "m1"), newMember(t, "app")
	for _, one := range []*member{m, app} {
		one.answer(func(w http.ResponseWriter, r *http.Request) {
			if r.Host != strings.TrimPrefix(one.URL, "http://") || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
				t.Errorf("%s got a request for host %s with headers %v", one.name, r.Host, r.Header)
			}
		})
	}
	c := quick()
	c.Members, c.Apps, c.Hosts = []Backend{{m.URL, "home"}}, []Backend{{app.URL, "home"}}, []string{"hydra.test"}
	_, at, _ := start(t, c)
	link := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	for what, q := range map[string]struct {
		method, path, host string
		headers            map[string]string
		status             int
	}{
		"a program":                     {"POST", "/v1/tables/t/clear", "", nil, 200},
		"a program by the name":         {"POST", "/v1/tables/t/clear", "hydra.test:8080", nil, 200},
		"the application's page":        {"POST", "/api/deposits", "hydra.test:8080", map[string]string{"Origin": "http://hydra.test:8080"}, 200},
		"its page on loopback":          {"POST", "/api/deposits", "", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		"a link to its page":            {"GET", "/", "", link, 200},
		"a link to the data":            {"GET", "/v1/tables", "", link, 403},
		"another site":                  {"POST", "/v1/tables/t/clear", "", map[string]string{"Origin": "http://evil.example"}, 403},
		"another site's order":          {"POST", "/api/deposits", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"another port's order":          {"POST", "/api/deposits", "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"a name that points here":       {"GET", "/", "rebound.example", nil, 421},
		"its own paths, by such a name": {"GET", "/-/backends", "rebound.example", nil, 421},
	} {
		req, err := http.NewRequestWithContext(t.Context(), q.method, at+q.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = q.host
		for name, value := range q.headers {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != q.status {
			t.Errorf("%s: %s, want %d", what, resp.Status, q.status)
		}
	}
}

// TestStalled begins requests that never end. They must not keep complete requests from a backend or the queue,
// and must time out. Requests beyond the available memory are refused.
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
	until(t, "the large request has reserved memory", func() bool { return b.room.InUse() > 600<<10 })
	for range 20 {
		if status, _, text := do(t, http.MethodPost, at+"/v1/transactions", "k", "{}"); status != http.StatusOK {
			t.Fatalf("a complete request: %d %s", status, text)
		}
	}
	if status, h, text := do(t, http.MethodPost, at+"/v1/transactions", "k",
		strings.Repeat("x", 700<<10)); status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("a request beyond the available memory: %d %s", status, text)
	}
	if text, _ := io.ReadAll(stalled); !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
		t.Errorf("response to a stalled request: %.200q", text)
	}
	until(t, "no memory is reserved", func() bool { return b.room.InUse() == 0 })
	if m.served.Load() != 20 {
		t.Errorf("the backend has served %d requests", m.served.Load())
	}
}
