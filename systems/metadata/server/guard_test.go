package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"skerry/systems/metadata/server"
)

// TestGuard sends commands as browsers do for pages of other sites, and by foreign names, behind
// and among those of a program on the same connection: none of them is run, whichever way of
// reading requests meets them.
func TestGuard(t *testing.T) {
	addr := serve(t, server.Options{})
	for name, c := range map[string]struct {
		host, headers string
		status        int
	}{
		"a program":                      {"m", "", 200},
		"a program by the address":       {addr, "", 200},
		"a program by another port":      {"localhost:1", "", 200},
		"a name made to point here":      {"rebound.example", "", 421},
		"with the port":                  {"rebound.example:8080", "", 421},
		"a part of the name":             {"m.rebound.example", "", 421},
		"a name and a list":              {"m,rebound.example", "", 421},
		"a name read by net/http":        {"rebound.example", "X-Unknown: 1\r\n", 421},
		"another site":                   {"m", "Origin: http://evil.example\r\n", 403},
		"a hidden site":                  {"m", "Origin: null\r\n", 403},
		"a newer browser":                {"m", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", 403},
		"the same browser's other port":  {"m", "sec-fetch-site: same-site\r\n", 403},
		"a page of the server's, if any": {"m:8080", "Origin: http://m:8080\r\nSec-Fetch-Site: same-origin\r\n", 200},
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
			post := func(host, headers, body string) string {
				return fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", host, headers, len(body), body)
			}
			whole := post("m", "", "mkdir "+dir+"-before") + post(c.host, c.headers, "mkdir "+dir) + post("m", "", "mkdir "+dir+"-after")
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
			if _, status := ask(t, addr, "stat "+dir); (status == 200) != (c.status == 200) {
				t.Errorf("what was asked for is there or not: %d", status)
			}
		})
	}
}
