package balancer

import (
	"net/http"
	"strings"
	"testing"
)

// TestForeign asks by foreign names and as pages of other sites do. What the balancer lets through
// reaches a backend, which knows neither the balancer's names nor its pages, as its own.
func TestForeign(t *testing.T) {
	m, app := newMember(t, "m1"), newMember(t, "app")
	for _, one := range []*member{m, app} {
		one.answer(func(w http.ResponseWriter, r *http.Request) {
			if r.Host != strings.TrimPrefix(one.URL, "http://") || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
				t.Errorf("%s was asked for %s with %v", one.name, r.Host, r.Header)
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
