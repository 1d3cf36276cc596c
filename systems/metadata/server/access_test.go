package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/bearer"
	"skerry/systems/metadata/server"
)

// TestGuard sends commands as browsers send them for pages of other sites, and under foreign host names, mixed
// with legitimate requests on the same connection. None of them runs, in either request path.
func TestGuard(t *testing.T) {
	addr := serve(t, server.Options{})
	for name, c := range map[string]struct {
		host, headers string
		status        int
	}{
		"a program":                     {"m", "", 200},
		"a program by the address":      {addr, "", 200},
		"a program by another port":     {"localhost:1", "", 200},
		"a rebound name":                {"rebound.example", "", 421},
		"with the port":                 {"rebound.example:8080", "", 421},
		"a part of the name":            {"m.rebound.example", "", 421},
		"a name and a list":             {"m,rebound.example", "", 421},
		"a name read by net/http":       {"rebound.example", "X-Unknown: 1\r\n", 421},
		"another site":                  {"m", "Origin: http://evil.example\r\n", 403},
		"a hidden site":                 {"m", "Origin: null\r\n", 403},
		"a newer browser":               {"m", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", 403},
		"another port of the same site": {"m", "sec-fetch-site: same-site\r\n", 403},
		"a page of the server":          {"m:8080", "Origin: http://m:8080\r\nSec-Fetch-Site: same-origin\r\n", 200},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			dir := fmt.Sprintf("/%x", name)
			send := func(host, headers, body string) string {
				return fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", host, headers, len(body), body)
			}
			whole := send("m", "", "mkdir "+dir+"-before") + send(c.host, c.headers, "mkdir "+dir) + send("m", "", "mkdir "+dir+"-after")
			if _, err := io.WriteString(conn, whole); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(conn)
			for i, want := range []int{200, c.status, 200} {
				answer, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, answer.Body); err != nil {
					t.Fatal(err)
				}
				if answer.StatusCode != want {
					t.Errorf("request %d: %d, want %d", i, answer.StatusCode, want)
				}
			}
			if _, status := post(t, addr, "stat "+dir); (status == 200) != (c.status == 200) {
				t.Errorf("existence of the directory: status %d", status)
			}
		})
	}
}

// TestTokens sends commands with each kind of token, one at a time and pipelined, through both request paths. Each
// gets what its token allows.
func TestTokens(t *testing.T) {
	secret := map[string]string{}
	var lines strings.Builder
	for _, scope := range []string{"read", "write", "admin"} {
		secret[scope] = strings.Repeat(scope[:1], 32)
		fmt.Fprintf(&lines, "%s %s\n", scope, secret[scope])
	}
	tokens, err := bearer.Parse([]byte(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	member := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }
	addr := serve(t, server.Options{Tokens: tokens, Routes: map[string]http.HandlerFunc{"POST /v1/members/add": member}})
	type request struct {
		who, method, path, body string
		status                  int
	}
	var all []request
	for i, who := range []string{"admin", "", "read", "write", "nobody", "write", "read", "", "admin"} {
		want := func(least string) int {
			rank := map[string]int{"read": 1, "write": 2, "admin": 3}
			switch {
			case rank[who] == 0:
				return http.StatusUnauthorized
			case rank[who] < rank[least]:
				return http.StatusForbidden
			}
			return http.StatusOK
		}
		all = append(all,
			request{who, "POST", "/", "ls /", want("read")},
			request{who, "POST", "/", fmt.Sprintf("mkdir /%d", i), want("write")},
			request{who, "POST", "/v1/ls", `{"path":"/"}`, want("read")},
			request{who, "POST", "/v1/mkdir", fmt.Sprintf(`{"path":"/json%d"}`, i), want("write")},
			request{who, "GET", "/v1/status", "", want("read")},
			request{who, "GET", "/metrics", "", want("read")},
			request{who, "POST", "/v1/members/add", "{}", want("admin")},
			request{who, "HEAD", "/", "", 200},
			request{who, "GET", "/", "", 200},
		)
	}
	for _, kinds := range []string{"all", "plain"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var sent strings.Builder
		var asked []request
		for _, q := range all {
			if kinds == "plain" && (q.path != "/" || q.method != "POST") {
				continue // all requests read in place, together
			}
			q.body = strings.Replace(q.body, "mkdir /", "mkdir /"+kinds, 1)
			asked = append(asked, q)
			auth := ""
			switch q.who {
			case "":
			case "nobody":
				auth = "Authorization: Bearer " + strings.Repeat("x", 32) + "\r\n"
			default:
				auth = "Authorization: Bearer " + secret[q.who] + "\r\n"
			}
			fmt.Fprintf(&sent, "%s %s HTTP/1.1\r\nHost: m\r\n%sContent-Length: %d\r\n\r\n%s", q.method, q.path, auth, len(q.body), q.body)
		}
		go func() { _, _ = io.WriteString(conn, sent.String()) }() // the answers show a failure
		r := bufio.NewReader(conn)
		for _, q := range asked {
			answer, err := http.ReadResponse(r, &http.Request{Method: q.method})
			if err != nil {
				t.Fatalf("%+v: %v", q, err)
			}
			text, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != q.status {
				t.Errorf("%s: %+v: %d %s, %v", kinds, q, answer.StatusCode, text, err)
			}
		}
	}
	testReadOnlyBatch(t, addr, secret["read"])
}

// testReadOnlyBatch sends a batch with a token that only allows reading: its change is refused.
func testReadOnlyBatch(t *testing.T, addr, token string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/", strings.NewReader("ls /\nmkdir /batch\nls /"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); strings.Count(string(text), "\n200 ") != 1 ||
		strings.Contains(string(text), "batch\n200") || !strings.Contains(string(text), "\n403 ") {
		t.Errorf("batch with a read token: %q", text)
	}
}
