package e2e

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry/test/testkit"
)

//go:embed testdata/attack.html
var attackPage string

// Names that the browser resolves: an unrelated site, and one whose name resolves to this machine after its page is
// loaded.
const (
	evilSite    = "evil.example"
	reboundSite = "rebound.example"
	// reboundAddr is the first address of the rebound name, on which attacker.rebind listens.
	reboundAddr = "127.88.0.1"
)

// job is an attempt of a page; see testdata/attack.html.
type job struct {
	How     string            `json:"how"`
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Body    *string           `json:"body,omitempty"`
	Type    string            `json:"type,omitempty"`
	Field   string            `json:"field,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// page is a page of an attacker, at /NAME of its server.
type page struct {
	Name   string   `json:"name"`
	Jobs   []job    `json:"jobs"`
	Frames []string `json:"frames"`
}

// attacker serves pages and receives their results.
type attacker struct {
	t     *testing.T
	port  string
	mu    sync.Mutex
	pages map[string]string
	came  map[string][]string
}

func newAttacker(t *testing.T) *attacker {
	a := &attacker{t: t, pages: map[string]string{}, came: map[string][]string{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	_, a.port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return a
}

// at returns the URL of a page by a name of the attacker's server.
func (a *attacker) at(host, page string) string { return "http://" + host + ":" + a.port + "/" + page }

func (a *attacker) add(p page) {
	text, err := json.Marshal(p)
	if err != nil {
		a.t.Fatal(err)
	}
	html := strings.Replace(attackPage, "JSON_OF_THE_PAGE", string(text), 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pages[p.Name] = strings.Replace(html, "DONE", `"`+a.at(evilSite, "done")+`"`, 1)
}

func (a *attacker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.URL.Path == "/done" {
		var told struct {
			Name string
			Came []string
		}
		if err := json.NewDecoder(r.Body).Decode(&told); err == nil {
			a.came[told.Name] = told.Came
		}
		return
	}
	html, ok := a.pages[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, html) // the browser may have gone
}

// results returns the results of a page's jobs, and whether all are complete.
func (a *attacker) results(page string) (came []string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	came, ok = a.came[page]
	return came, ok
}

// rebind redirects the rebound name to a service after its page is loaded, like an attacker's DNS server: the page is
// answered here, and every further connection goes to the service unchanged. It returns the page's URL, with the port
// of the service.
func (a *attacker) rebind(service, page string) string {
	_, port, err := net.SplitHostPort(service)
	if err != nil {
		a.t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(reboundAddr, port))
	if err != nil {
		a.t.Fatal(err)
	}
	var all sync.WaitGroup
	a.t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { a.pass(c, service, page) })
		}
	})
	return "http://" + net.JoinHostPort(reboundSite, port) + "/" + page
}

// pass answers the request for the page, and forwards any other connection.
func (a *attacker) pass(c net.Conn, service, page string) {
	defer c.Close()
	stop := a.t.Context().Done()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-stop:
			c.Close()
		case <-done:
		}
	}()
	r := bufio.NewReader(c)
	want := "GET /" + page + " "
	first, err := r.Peek(len(want))
	if err != nil {
		return // a connection that the browser opened in advance
	}
	if string(first) == want {
		a.mu.Lock()
		html := a.pages[page]
		a.mu.Unlock()
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(html), html)
		return
	}
	s, err := net.Dial("tcp", service)
	if err != nil {
		return
	}
	defer s.Close()
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(c, s); c.Close() })
	_, _ = io.Copy(s, r) // either side may end it
	s.Close()
	back.Wait()
}

// visit opens a page in Chromium until its jobs are complete.
func (a *attacker) visit(url string, pages ...string) {
	a.t.Helper()
	testkit.Need(a.t, testkit.Chromium)
	var said strings.Builder
	c := exec.CommandContext(a.t.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
		"--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--remote-debugging-port=0",
		"--user-data-dir="+a.t.TempDir(), "--host-resolver-rules=MAP "+evilSite+" 127.0.0.1,MAP "+reboundSite+" "+reboundAddr, url)
	c.Stdout, c.Stderr = &said, &said
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		a.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	stop := func() { _ = c.Process.Signal(syscall.SIGTERM); <-ended }
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(50 * time.Millisecond) {
		missing := ""
		for _, p := range pages {
			if _, ok := a.results(p); !ok {
				missing = p
			}
		}
		if missing == "" {
			stop()
			return
		}
		select {
		case err := <-ended:
			a.t.Fatalf("Chromium ended: %v\n%s", err, said.String())
		default:
		}
		if time.Now().After(deadline) {
			stop()
			a.t.Fatalf("the page %s never reported its results\n%s", missing, said.String())
		}
	}
}
