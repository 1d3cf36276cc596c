package webguard

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func tcp(t *testing.T, addr string) net.Addr {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestHost(t *testing.T) {
	local := "localhost LOCALHOST localhost. localhost:8080 127.0.0.1 127.0.0.1:1 127.8.9.10:80 [::1] [::1]:8090 [::ffff:127.0.0.1]:80"
	names := "rebound.example rebound.example:8080 localhost.evil.example 127.0.0.1.evil.example xlocalhost evil.example. .localhost [evil.example] localhost:80:80 127.1 2130706433 localhost,evil.example user@localhost"
	addresses := "10.0.0.1 10.0.0.1:8080 0.0.0.0:8080 [2001:db8::1]:80 [::]:80 [fe80::1%25eth0]:80"
	for listen, want := range map[string]struct {
		known      []string
		yes, never string
	}{
		"":               {nil, local, names + " " + addresses},
		"127.0.0.1:8080": {nil, local, names + " " + addresses},
		"[::1]:8080":     {nil, local, names + " " + addresses},
		"127.9.0.1:1":    {[]string{"Hydra.test", "10.0.0.1:8080"}, local + " hydra.test HYDRA.TEST:80 hydra.test.:80 10.0.0.1 10.0.0.1:1", names + " x.hydra.test hydra.test.evil.example 10.0.0.2"},
		"10.0.0.1:8080":  {nil, local + " " + addresses, names},
		"0.0.0.0:8080":   {[]string{"a1.shop:8080", "[2001:db8::2]:80"}, local + " " + addresses + " a1.shop [2001:db8::2]:1", names + " a2.shop"},
		"[::]:8080":      {nil, local + " " + addresses, names},
	} {
		var at net.Addr
		if listen != "" {
			at = tcp(t, listen)
		}
		g := New(at, want.known...)
		for _, host := range append(strings.Fields(want.yes), "") {
			if !g.AllowsHost(host) {
				t.Errorf("listening on %q with names %v: host %q is refused", listen, want.known, host)
			}
		}
		for _, host := range strings.Fields(want.never) {
			if g.AllowsHost(host) {
				t.Errorf("listening on %q with names %v: host %q is accepted", listen, want.known, host)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	navigate := []string{"Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}
	for who, c := range map[string]struct {
		headers []string
		get     error // of GET /page, to which other sites may link
		data    error // of GET /data
		post    error // of POST /page
	}{
		"a program":                        {nil, nil, nil, nil},
		"a program that sends a form":      {[]string{"Content-Type: application/x-www-form-urlencoded", "Referer: http://evil.example/"}, nil, nil, nil},
		"an own page":                      {[]string{"Origin: http://localhost:8080", "Sec-Fetch-Site: same-origin"}, nil, nil, nil},
		"an own page over plain HTTP":      {[]string{"Origin: http://localhost:8080"}, nil, nil, nil},
		"an own page behind a proxy":       {[]string{"Origin: https://lab.example", "Sec-Fetch-Site: same-origin"}, nil, nil, nil},
		"the user":                         {[]string{"Sec-Fetch-Site: none", navigate[0], navigate[1]}, nil, nil, nil},
		"another site":                     {[]string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site"}, ErrSite, ErrSite, ErrSite},
		"an image of another site":         {[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}, ErrSite, ErrSite, ErrSite},
		"a frame of another site":          {[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, ErrSite, ErrSite, ErrSite},
		"a link of another site":           {append([]string{"Sec-Fetch-Site: cross-site"}, navigate...), nil, ErrSite, ErrSite},
		"a form of another site":           {append([]string{"Sec-Fetch-Site: cross-site", "Origin: http://evil.example"}, navigate...), nil, ErrSite, ErrSite},
		"another port":                     {[]string{"Origin: http://localhost:3000", "Sec-Fetch-Site: same-site"}, ErrSite, ErrSite, ErrSite},
		"another port over plain HTTP":     {[]string{"Origin: http://localhost:3000"}, ErrSite, ErrSite, ErrSite},
		"a page with a null origin":        {[]string{"Origin: null"}, ErrSite, ErrSite, ErrSite},
		"a null origin without a site":     {[]string{"Origin: null", "Sec-Fetch-Site: none"}, ErrSite, ErrSite, ErrSite},
		"an extension":                     {[]string{"Origin: chrome-extension://abc", "Sec-Fetch-Site: none"}, ErrSite, ErrSite, ErrSite},
		"an unknown kind of site":          {[]string{"Sec-Fetch-Site: near-site"}, ErrSite, ErrSite, ErrSite},
		"two origins":                      {[]string{"Origin: http://localhost:8080", "Origin: http://evil.example"}, ErrSite, ErrSite, ErrSite},
		"an upgrade of another site":       {[]string{"Origin: http://evil.example", "Connection: Upgrade", "Upgrade: websocket"}, ErrSite, ErrSite, ErrSite},
		"a rebound name":                   {[]string{"Host: rebound.example:8080", "Origin: http://rebound.example:8080", "Sec-Fetch-Site: same-origin"}, ErrHost, ErrHost, ErrHost},
		"a rebound name typed by the user": {[]string{"Host: rebound.example:8080", "Sec-Fetch-Site: none"}, ErrHost, ErrHost, ErrHost},
		"a link to a rebound name":         {append([]string{"Host: rebound.example", "Sec-Fetch-Site: cross-site"}, navigate...), ErrHost, ErrHost, ErrHost},
		"an own page of a known name":      {[]string{"Host: hydra.test:8080", "Origin: http://hydra.test:8080"}, nil, nil, nil},
	} {
		g := New(nil, "hydra.test")
		g.Links = func(path string) bool { return path == "/page" }
		handler := g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), nil)
		for what, want := range map[string]error{"GET /page": c.get, "GET /data": c.data, "POST /page": c.post, "DELETE /page": c.post, "OPTIONS /page": c.post} {
			method, path, _ := strings.Cut(what, " ")
			r := httptest.NewRequest(method, "http://localhost:8080"+path, nil)
			for _, h := range c.headers {
				if name, value, _ := strings.Cut(h, ": "); name == "Host" {
					r.Host = value
				} else {
					r.Header.Add(name, value)
				}
			}
			if err := g.Check(r); !errors.Is(err, want) {
				t.Errorf("%s of %s: %v, want %v", what, who, err, want)
			}
			status := map[error]int{nil: http.StatusNoContent, ErrSite: http.StatusForbidden, ErrHost: http.StatusMisdirectedRequest}[want]
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != status || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s of %s: answered with %d %v, want %d", what, who, w.Code, w.Header(), status)
			}
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	g, r := New(nil), httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/", nil)
	for b.Loop() {
		if err := g.Check(r); err != nil {
			b.Fatal(err)
		}
	}
}
