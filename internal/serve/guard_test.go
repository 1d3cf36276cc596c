package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/event"
	"skerry/internal/record"
)

const cut = `{"link_down": {"between": ["a", "b"]}}`

// A page of another server cannot inject events.
func TestCrossSiteChangesAreRejected(t *testing.T) {
	b := newBench(t, "")
	feed, name := b.live("quickstart")
	fired := 0
	measure(feed, func(context.Context, event.Event) (record.Event, error) {
		fired++
		return record.Event{ID: fired}, nil
	})
	path := "/api/runs/" + name + "/events"
	csrf := csrfHeader + ": " + b.server.csrf
	tests := map[string][]string{
		"without anything":                      nil,
		"a form of another site":                {"Content-Type: text/plain", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"},
		"a script of another site":              {csrf, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"},
		"a page of another port":                {csrf, "Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site"},
		"an old browser on another site":        {csrf, "Origin: http://evil.example"},
		"without origin":                        {csrf, "Origin: null"},
		"a rebound name":                        {csrf, "Host: evil.example", "Origin: http://evil.example", "Sec-Fetch-Site: same-origin"},
		"a page from before the last restart":   {csrfHeader + ": of another server", "Sec-Fetch-Site: same-origin"},
		"a page without a CSRF token":           {"Sec-Fetch-Site: same-origin", "Origin: " + b.http.URL},
		"a prefix of the CSRF token":            {csrfHeader + ": " + b.server.csrf[:5], "Sec-Fetch-Site: same-origin"},
		"the CSRF token in another letter case": {csrfHeader + ": " + strings.ToLower(b.server.csrf), "Sec-Fetch-Site: same-origin"},
	}
	for who, headers := range tests {
		code, _, body := b.request(http.MethodPost, path, cut, headers...)
		if code != http.StatusForbidden && code != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d %s", who, code, body)
		}
	}
	if fired > 0 {
		t.Fatalf("%d events were fired", fired)
	}
	for _, headers := range [][]string{b.own(), {csrf, "Content-Type: application/json"}} { // a browser, and curl
		if code, _, body := b.request(http.MethodPost, path, cut, headers...); code != http.StatusOK {
			t.Errorf("an own page: %d %s", code, body)
		}
	}
	if fired != 2 {
		t.Errorf("%d events were fired", fired)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if code, _, _ := b.request(method, "/api/runs/"+name+"/notes", "{}"); code != http.StatusForbidden {
			t.Errorf("%s without csrf: %d", method, code)
		}
	}
}

// A page of another site cannot read anything.
func TestCrossSiteReadsAreRejected(t *testing.T) {
	b := newBench(t, "")
	name := b.run("x", true)
	for _, path := range []string{"/api/runs", "/api/session", "/api/runs/" + name + "/live", "/api/runs/" + name} {
		if code, _, _ := b.request(http.MethodGet, path, "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"); code != http.StatusForbidden {
			t.Errorf("%s from another site: %d", path, code)
		}
		if code, _, _ := b.request(http.MethodGet, path, "", "Host: rebound.example:80"); code != http.StatusMisdirectedRequest {
			t.Errorf("%s by another name: %d", path, code)
		}
	}
	for _, host := range []string{"localhost", "localhost:8090", "127.0.0.1", "127.0.0.1:1", "[::1]:8090", "[::1]"} {
		if code, _, _ := b.request(http.MethodGet, "/api/runs", "", "Host: "+host); code != http.StatusOK {
			t.Errorf("request for host %s: %d", host, code)
		}
	}
	if code, _, _ := b.request(http.MethodGet, "/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"); code != http.StatusOK {
		t.Errorf("a link to the page: %d", code)
	}
}

func TestHeaders(t *testing.T) {
	b := newBench(t, "")
	for _, path := range []string{"/", "/login", "/assets/a.js", "/api/runs", "/nothing", "/metrics"} {
		_, h, _ := b.request(http.MethodGet, path, "")
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "script-src 'unsafe-inline'") ||
			!strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestToken(t *testing.T) {
	const token = "0123456789abcdef0123"
	b := newBench(t, token)
	name := b.run("x", true)
	for _, path := range []string{"/api/runs", "/api/session", "/metrics", "/assets/a.js", "/runs/" + name + "/report", "/api/runs/" + name} {
		for who, headers := range map[string][]string{
			"without": nil, "a wrong token": {"Authorization: Bearer 0123456789abcdef0124"}, "half a token": {"Authorization: Bearer " + token[:8]},
			"a wrong cookie":      {"Cookie: " + b.server.cookieName() + "=x"},
			"the token as cookie": {"Cookie: " + b.server.cookieName() + "=" + token}, "another scheme": {"Authorization: Basic " + token},
		} {
			if code, h, body := b.request(http.MethodGet, path, "", headers...); code != http.StatusUnauthorized ||
				h.Get("WWW-Authenticate") == "" || !strings.Contains(body, "login") {
				t.Errorf("%s, %s: %d %s", path, who, code, body)
			}
		}
		if code, _, _ := b.request(http.MethodGet, path, "", "Authorization: Bearer "+token); code != http.StatusOK {
			t.Errorf("%s with the token: %d", path, code)
		}
		if code, _, _ := b.request(http.MethodGet, path, "", "Authorization: Bearer "+token, "Host: lab.example:8090"); code != http.StatusOK {
			t.Errorf("%s with the token, by another name: %d", path, code)
		}
	}
	if code, h, _ := b.request(http.MethodGet, "/", ""); code != http.StatusSeeOther || h.Get("Location") != "/login" &&
		h.Get("Location") != "login" {
		t.Errorf("the page without a token: %d to %s", code, h.Get("Location"))
	}
	form := "Content-Type: application/x-www-form-urlencoded"
	if code, h, body := b.request(http.MethodPost, "/login", "token=wrong", form); code != http.StatusUnauthorized ||
		h.Get("Set-Cookie") != "" || !strings.Contains(body, "not the token") {
		t.Errorf("a wrong token: %d %v %s", code, h, body)
	}
	if code, _, _ := b.request(http.MethodPost, "/login", "token="+token, form, "Origin: http://evil.example",
		"Sec-Fetch-Site: cross-site"); code != http.StatusForbidden {
		t.Errorf("a login from another site: %d", code)
	}
	code, h, _ := b.request(http.MethodPost, "/login", "token="+token, form)
	cookie := h.Get("Set-Cookie")
	if code != http.StatusSeeOther || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") ||
		strings.Contains(cookie, token) {
		t.Fatalf("the right token: %d %s", code, cookie)
	}
	pair, _, _ := strings.Cut(cookie, ";")
	if code, _, body := b.request(http.MethodGet, "/", "", "Cookie: "+pair); code != http.StatusOK || !strings.Contains(body, "Skerry") {
		t.Errorf("the page after the login: %d %s", code, body)
	}
}

func TestPublicAddressRequiresToken(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0"} {
		l, err := Listen(address, "")
		if !errors.Is(err, ErrToken) || !strings.Contains(advice.Of(err), "SKERRY_TOKEN") {
			t.Errorf("%s: %v", address, err)
		}
		if l != nil {
			l.Close()
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := Listen(address, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(l.Addr().String(), ""); err == nil || advice.Of(err) == "" {
			t.Errorf("an address in use: %v", err)
		}
		l.Close()
	}
	l, err := Listen("0.0.0.0:0", "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	if u := URL(l.Addr()); !strings.HasPrefix(u, "http://localhost:") {
		t.Errorf("its URL is %s", u)
	}
	l.Close()
	for token, ok := range map[string]bool{"": false, "short": false, "0123456789abcdef": true, "0123456789 abcdef": false,
		"0123456789abcdeé": false} {
		if err := CheckToken(token); (err == nil) != ok {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestServeEnds(t *testing.T) {
	b := newBench(t, "")
	_, name := b.live("x")
	l, err := Listen("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.server.Serve(ctx, l) }()
	answer, err := http.Get(URL(l.Addr()) + "api/runs/" + name + "/live") // a browser that follows
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it continues")
	}
}
