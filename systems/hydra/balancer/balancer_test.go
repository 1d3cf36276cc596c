package balancer

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skerry/systems/hydra/api"
)

// member is a backend whose responses the test controls.
type member struct {
	*httptest.Server
	name   string
	status atomic.Pointer[api.Status]
	serve  atomic.Pointer[http.HandlerFunc]
	served atomic.Int64
}

func newMember(t *testing.T, name string) *member {
	t.Helper()
	m := &member{name: name}
	m.status.Store(&api.Status{Member: name, Role: "follower", Leader: "x", Term: 1})
	m.answer(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/status" || r.URL.Path == "/healthz" {
			_ = json.NewEncoder(w).Encode(m.status.Load())
			return
		}
		m.served.Add(1)
		w.Header().Set(api.HeaderMember, name)
		(*m.serve.Load())(w, r)
	}))
	t.Cleanup(func() { m.CloseClientConnections(); m.Close() })
	return m
}

func (m *member) answer(f http.HandlerFunc) { m.serve.Store(&f) }

func (m *member) lead(term uint64) {
	m.status.Store(&api.Status{Member: m.name, Role: "leader", Leader: m.name, Term: term})
}

func refuse(code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(api.Problem{Code: code})
	}
}

// quick returns a configuration with times for tests: short enough that expected events happen soon, long
// enough that timeouts do not expire on a slow machine.
func quick() Config {
	c := Defaults()
	c.Name, c.Cloud = "lb", "home"
	c.Interval, c.CheckTimeout, c.Drain = 10*time.Millisecond, 20*time.Second, 0
	c.Patience, c.Timeout, c.Try = 20*time.Second, 60*time.Second, 30*time.Second
	return c
}

// start runs a balancer and returns it with its URL and a function that stops it.
func start(t *testing.T, c Config) (b *Balancer, at string, end func() error) {
	t.Helper()
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, l) }()
	end = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = end() })
	return b, "http://" + l.Addr().String(), end
}

// do sends a request and returns the status, the headers and the body of the response.
func do(t *testing.T, method, url, key, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set(api.HeaderRequestID, key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting until %s", what)
		}
	}
}

func members(cloud string, all ...*member) (backends []Backend) {
	for _, m := range all {
		backends = append(backends, Backend{URL: m.URL, Cloud: cloud})
	}
	return backends
}

func TestWritesGoToNearLeader(t *testing.T) {
	a, b, far := newMember(t, "a"), newMember(t, "b"), newMember(t, "far")
	b.lead(2)
	a.lead(1) // its claim is outdated
	c := quick()
	c.Members = append(members("home", a, b), members("away", far)...)
	c.Near = 0 // no backend of another cloud is near
	balancer, at, _ := start(t, c)
	for range 10 {
		if status, h, body := do(t, "PUT", at+"/v1/tables/t/rows/k", "", "x"); status != 200 || h.Get(api.HeaderMember) != "b" || body != "x" {
			t.Fatalf("status %d from %s: %q", status, h.Get(api.HeaderMember), body)
		}
	}
	far.lead(3)
	until(t, "the balancer finds the far leader", func() bool {
		for _, s := range balancer.Backends() {
			if s.URL == far.URL {
				return s.Leader
			}
		}
		return false
	})
	a.status.Store(&api.Status{Role: "follower", Leader: "far"})
	b.status.Store(&api.Status{Role: "follower", Leader: "far"})
	before := far.served.Load()
	for range 10 {
		do(t, "PUT", at+"/v1/tables/t/rows/k", "", "x")
	}
	if far.served.Load() != before {
		t.Error("a write went to a leader that is not near")
	}
}

// TestOrder checks that equally near backends share the requests, a busy backend gets fewer, and backends of
// other clouds come last.
func TestOrder(t *testing.T) {
	c := quick()
	c.Members = []Backend{{"http://a", "home"}, {"http://b", "home"}, {"http://busy", "home"}, {"http://far", "away"}, {"http://down", "home"}}
	balancer, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := balancer.members
	for i, b := range p.backends {
		b.view = view{up: i < 4, distance: time.Millisecond}
	}
	p.backends[3].distance = 40 * time.Millisecond
	p.backends[2].inflight.Store(100)
	first := map[string]int{}
	for range 200 {
		order := p.order(false)
		first[order[0].url.Host]++
		if len(order) != 4 || order[2].url.Host != "busy" || order[3].url.Host != "far" {
			t.Fatalf("%d backends, %s and %s last", len(order), order[2].url.Host, order[3].url.Host)
		}
	}
	if first["a"] < 40 || first["b"] < 40 {
		t.Errorf("first backends: %v", first)
	}
	p.backends[3].view.leads = true
	if got := p.order(true)[0].url.Host; got == "far" {
		t.Error("a write goes to a leader that is not near")
	}
	p.config.Near = time.Second
	if got := p.order(true)[0].url.Host; got != "far" {
		t.Errorf("a write goes to %s, want the leader, which is near enough", got)
	}
	for _, b := range p.backends {
		b.view.up = false
	}
	if got := len(p.order(true)); got != len(p.backends) {
		t.Errorf("%d backends are tried although none is usable", got)
	}
}

func TestReadsFailOverToOtherCloud(t *testing.T) {
	a, b, far := newMember(t, "a"), newMember(t, "b"), newMember(t, "far")
	c := quick()
	c.Members = append(members("home", a, b), members("away", far)...)
	_, at, _ := start(t, c)
	for range 60 {
		do(t, "GET", at+"/v1/tables/t/rows/k", "", "")
	}
	if a.served.Load()+b.served.Load() != 60 || far.served.Load() != 0 {
		t.Errorf("served %d, %d, far %d", a.served.Load(), b.served.Load(), far.served.Load())
	}
	for _, m := range []*member{a, b} {
		m.CloseClientConnections()
		m.Close()
	}
	for i := range 20 {
		if status, h, _ := do(t, "GET", at+"/v1/tables/t/rows/k", "", ""); status != 200 || h.Get(api.HeaderMember) != "far" {
			t.Fatalf("read %d: status %d from %s", i, status, h.Get(api.HeaderMember))
		}
	}
}

func TestOnlySafeRequestsAreRepeated(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	tests := []struct {
		name, method, key string
		first             http.HandlerFunc
		status            int
		code              string
		both              bool // the second backend gets the request, too
	}{
		{"a read over a connection that broke", "GET", "", broken, 200, "", true},
		{"a keyed write over a connection that broke", "POST", "k", broken, 200, "", true},
		{"a write over a connection that broke", "POST", "", broken, 504, api.CodeInDoubt, false},
		{"a write that was certainly not done", "POST", "", refuse(api.CodeUnavailable), 200, "", true},
		{"a write to a busy member", "POST", "", refuse(api.CodeOverloaded), 200, "", true},
		{"a write with an unknown outcome", "POST", "", refuse("other"), 504, api.CodeInDoubt, false},
		{"a refusal of the request", "POST", "k", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(409) }, 409, "", false},
		{"an error of the server", "GET", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 500, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first, second := newMember(t, "first"), newMember(t, "second")
			first.lead(1)
			first.answer(tt.first)
			c := quick()
			c.Members = append(members("home", first), members("away", second)...)
			_, at, _ := start(t, c)
			status, _, body := do(t, tt.method, at+"/v1/transactions", tt.key, "{}")
			if status != tt.status || !strings.Contains(body, tt.code) {
				t.Errorf("status %d: %s", status, body)
			}
			if got := second.served.Load() > 0; got != tt.both {
				t.Errorf("the second backend got the request: %v, want %v", got, tt.both)
			}
		})
	}
}

func TestHangingBackend(t *testing.T) {
	hung, well := newMember(t, "hung"), newMember(t, "well")
	release := make(chan struct{})
	hung.answer(func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	c := quick()
	c.Try = 50 * time.Millisecond
	c.Members = append(members("home", hung), members("away", well)...)
	_, at, _ := start(t, c)
	for _, method := range []string{"GET", "POST"} {
		if status, h, _ := do(t, method, at+"/v1/x", "key", ""); status != 200 || h.Get(api.HeaderMember) != "well" {
			t.Errorf("%s: status %d from %s", method, status, h.Get(api.HeaderMember))
		}
	}
}

func TestBalancerWaitsForElection(t *testing.T) {
	m := newMember(t, "m")
	var asked atomic.Int64
	m.answer(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 4 {
			refuse(api.CodeUnavailable)(w, r)
		}
	})
	c := quick()
	c.Members = members("home", m)
	_, at, _ := start(t, c)
	if status, _, body := do(t, "POST", at+"/v1/transactions", "", "{}"); status != 200 || asked.Load() != 4 {
		t.Errorf("status %d after %d attempts: %s", status, asked.Load(), body)
	}
}

func TestNothingAnswers(t *testing.T) {
	m := newMember(t, "m")
	m.Close()
	c := quick()
	c.Patience = 0
	c.Members = members("home", m)
	_, at, _ := start(t, c)
	status, h, body := do(t, "POST", at+"/v1/transactions", "", "{}")
	if status != 503 || h.Get("Retry-After") == "" || !strings.Contains(body, api.CodeUnavailable) {
		t.Errorf("status %d, Retry-After %q: %s", status, h.Get("Retry-After"), body)
	}
}
