package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"skerry/test/testkit"
)

// loopback has the services as users start them on this machine, without tokens.
type loopback struct {
	*bench
	metadata, member, balancer, wallet, names string // HOST:PORT
}

// startLoopback starts one service of each kind.
func startLoopback(t *testing.T) *loopback {
	t.Parallel()
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	l := &loopback{bench: &bench{t: t, dir: t.TempDir(), exe: exe}}
	l.names = testkit.Address(t)
	l.metadata = l.serve(`serving .* on http://(\S+)/`, "metad", "serve", "--listen", "127.0.0.1:0", "--data", l.path("tree"))
	l.member = l.serve(`"serving":"(\S+)"`, "hydra", "node", "--cluster", "shop", "--name", "a1", "--cloud", "a", "--data", l.path("a1"), "--listen", "127.0.0.1:0", "--peer", testkit.Address(t))
	l.wallet = l.serve(`listens on (\S+)`, "hydra", "wallet", "--cloud", "a", "--listen", "127.0.0.1:0", "--data", l.member)
	l.balancer = l.serve(`listens on (\S+)`, "hydra", "lb", "--cloud", "a", "--listen", "127.0.0.1:0", "--member", "a=http://"+l.member, "--app", "a=http://"+l.wallet)
	l.serve(`serving \S+ at (\S+)`, "hydra", "dns", "--zone", "hydra.test", "--target", "http://"+l.balancer+"/-/ready", "--listen", "127.0.0.1:0", "--metrics", l.names)
	return l
}

// serve starts a command and returns its listen address.
func (l *loopback) serve(says, program string, args ...string) (addr string) {
	l.t.Helper()
	r, pattern := l.program(program, args...).start(), regexp.MustCompile(says)
	l.await(program+" "+args[0], func() bool {
		select {
		case <-r.done:
			l.t.Fatalf("%s %v ended:\n%s", program, args, r.stderr.String())
		default:
		}
		found := pattern.FindStringSubmatch(r.stdout.String())
		if found != nil {
			addr = found[1]
		}
		return found != nil
	})
	return addr
}

// sendRequest sends a request like a program such as curl, without Origin and Sec-Fetch-Site.
func (l *loopback) sendRequest(method, url, body string) (status int, answer string) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), method, "http://"+url, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func (l *loopback) must(method, url, body string) string {
	l.t.Helper()
	var answer string
	l.await(method+" "+url, func() bool {
		status, text := l.sendRequest(method, url, body)
		answer = text
		return status == http.StatusOK
	})
	return answer
}

// ways are the ways in which a page can reach a service; each has its own directory and table.
var ways = []string{"fetch", "form", "beacon", "samesite", "rebound", "balancer"}

const secret = "only-this-machine-knows"

// fill gives every service data that a page could remove or read.
func (l *loopback) fill() {
	for _, way := range ways {
		l.must(http.MethodPost, l.metadata+"/", "mkdir -p /"+way+"/"+secret)
		l.must(http.MethodPut, l.member+"/v1/tables/"+way, "")
		l.must(http.MethodPut, l.member+"/v1/tables/"+way+"/rows/a", `{"text": "`+secret+`"}`)
	}
	l.must(http.MethodGet, l.wallet+"/api/accounts", "")
	l.must(http.MethodGet, l.balancer+"/status", "")
}

// intact fails the test for each change by a page.
func (l *loopback) intact() {
	for _, way := range ways {
		if _, listed := l.sendRequest(http.MethodPost, l.metadata+"/", "ls /"+way); listed != secret+"\n" {
			l.t.Errorf("the metadata server's /%s was removed: %s", way, listed)
		}
		if _, row := l.sendRequest(http.MethodGet, l.member+"/v1/tables/"+way+"/rows/a", ""); !strings.Contains(row, secret) {
			l.t.Errorf("the member's table %s was cleared: %s", way, row)
		}
	}
	if members := l.must(http.MethodGet, l.member+"/v1/members", ""); strings.Count(members, `"name"`) != 1 {
		l.t.Errorf("a member was added, which receives the log: %s", members)
	}
	if accounts := l.must(http.MethodGet, l.wallet+"/api/accounts", ""); strings.Contains(accounts, "mallory") {
		l.t.Errorf("an account was opened in the wallet: %s", accounts)
	}
}

func text(s string) *string { return &s }

// foreign returns the jobs of a page of another site, or of another port of this machine.
func (l *loopback) foreign() []job {
	member, balancer, wallet, tree := "http://"+l.member, "http://"+l.balancer, "http://"+l.wallet, "http://"+l.metadata
	return []job{
		{How: "fetch", URL: tree + "/", Body: text("rm -r /fetch")},
		{How: "form", URL: tree + "/", Field: "rm -r /form\nls /"},
		{How: "beacon", URL: tree + "/", Body: text("rm -r /beacon")},
		{How: "image", URL: tree + "/v1/status"},
		{How: "fetch", URL: member + "/v1/tables/fetch/clear", Body: text("")},
		{How: "form", URL: member + "/v1/tables/form/clear"},
		{How: "beacon", URL: member + "/v1/tables/beacon/clear", Body: text("x")},
		{How: "fetch", URL: member + "/v1/members", Body: text(`{"name": "mallory", "cloud": "a", "peer": "127.0.0.1:9"}`)},
		{How: "image", URL: member + "/v1/snapshot"},
		{How: "fetch", URL: balancer + "/v1/tables/balancer/clear", Body: text("")},
		{How: "form", URL: balancer + "/v1/tables/balancer/clear"},
		{How: "form", URL: wallet + "/api/accounts", Field: `{"name": "mallory"}`},
		{How: "fetch", URL: wallet + "/api/accounts", Body: text(`{"name": "mallory"}`), Type: "text/plain"},
	}
}

// sameSite returns the jobs of a page of another server of this machine, which is of the same site.
func (l *loopback) sameSite() []job {
	local := func(addr string) string { return "http://localhost:" + addr[strings.LastIndex(addr, ":")+1:] }
	return []job{
		{How: "fetch", URL: local(l.metadata) + "/", Body: text("rm -r /samesite")},
		{How: "fetch", URL: local(l.member) + "/v1/tables/samesite/clear", Body: text("")},
	}
}

// rebound returns the requests of a page whose name was rebound to each service, which the browser treats as the page's
// origin.
func (l *loopback) rebound() map[string][]job {
	order := map[string]string{"Content-Type": "application/json", "Idempotency-Key": "1"}
	return map[string][]job{
		l.metadata: {{How: "own", URL: "/", Method: "POST", Body: text("ls /rebound")}, {How: "own", URL: "/", Method: "POST", Body: text("rm -r /rebound")}},
		l.member:   {{How: "own", URL: "/v1/tables/rebound/rows"}, {How: "own", URL: "/v1/tables/rebound/clear", Method: "POST"}},
		l.balancer: {{How: "own", URL: "/v1/tables/fetch/rows"}, {How: "own", URL: "/-/backends"}},
		l.wallet:   {{How: "own", URL: "/api/accounts", Method: "POST", Body: text(`{"name": "mallory"}`), Headers: order}},
		l.names:    {{How: "own", URL: "/metrics"}},
	}
}

// careless is a service of this machine without any guard.
type careless struct {
	at    string
	mu    sync.Mutex
	heard map[string]string // bodies by path
}

func newCareless(t *testing.T) *careless {
	c := &careless{heard: map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard[r.URL.Path] = string(body)
	}))
	t.Cleanup(server.Close)
	c.at = server.URL
	return c
}

// jobs returns the attempts of a page on it, in all ways of the other jobs.
func (c *careless) jobs() []job {
	return []job{
		{How: "fetch", URL: c.at + "/fetch", Body: text("rm -r /")},
		{How: "form", URL: c.at + "/form", Field: "rm -r /\nls /"},
		{How: "beacon", URL: c.at + "/beacon", Body: text("rm -r /")},
		{How: "image", URL: c.at + "/image"},
	}
}

// acted checks that every job reached it: the browser had permitted the requests that the services rejected.
func (c *careless) acted(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, way := range []string{"fetch", "form", "beacon", "image"} {
		if body, came := c.heard["/"+way]; !came || way != "image" && !strings.HasPrefix(body, "rm -r /") {
			t.Errorf("a page cannot act on an unguarded service by %s, so this test proves nothing: %q", way, body)
		}
	}
}

// No web page can change or read a service of this machine: not by forms, requests without preflight, beacons and
// images, not from another port of this machine, and not by a rebound name. On a service without a guard, the same
// pages succeed.
func TestWebPagesHaveNoAccess(t *testing.T) {
	testkit.Need(t, testkit.Chromium)
	l, a, bare := startLoopback(t), newAttacker(t), newCareless(t)
	l.fill()
	first := page{Name: "first", Jobs: append(bare.jobs(), l.foreign()...), Frames: []string{a.at("localhost", "samesite")}}
	a.add(page{Name: "samesite", Jobs: l.sameSite(), Frames: []string{}})
	names := []string{"first", "samesite"}
	for service, jobs := range l.rebound() {
		p := page{Name: "rebound-" + filepath.Base(service), Jobs: jobs, Frames: []string{}}
		a.add(p)
		first.Frames, names = append(first.Frames, a.rebind(service, p.Name)), append(names, p.Name)
	}
	a.add(first)
	a.visit(a.at(evilSite, "first"), names...)
	bare.acted(t)
	l.intact()
	for service, jobs := range l.rebound() {
		came, _ := a.results("rebound-" + filepath.Base(service))
		if len(came) != len(jobs) {
			t.Fatalf("%s: %d of %d jobs were tried", service, len(came), len(jobs))
		}
		for i, answer := range came {
			if want := fmt.Sprint(http.StatusMisdirectedRequest); !strings.HasPrefix(answer, want) {
				t.Errorf("%s %s by another name: %.80s", service, jobs[i].URL, answer)
			}
		}
	}
}
