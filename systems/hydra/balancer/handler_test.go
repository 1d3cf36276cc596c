package balancer

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry/systems/hydra/api"
)

func TestShedding(t *testing.T) {
	m := newMember(t, "m")
	release := make(chan struct{})
	m.answer(func(http.ResponseWriter, *http.Request) { <-release })
	c := quick()
	c.Limit, c.Queue, c.QueueTime = 2, 3, time.Minute
	c.Members = members("home", m)
	registry := prometheus.NewRegistry()
	c.Registry, c.Gatherer = registry, registry
	b, at, _ := start(t, c)
	var all sync.WaitGroup
	var ok atomic.Int64
	for range 5 {
		all.Go(func() {
			if status, _, _ := do(t, "GET", at+"/v1/x", "", ""); status == 200 {
				ok.Add(1)
			}
		})
	}
	until(t, "two are served and three wait", func() bool { return m.served.Load() == 2 && b.members.limit.waiting.Load() == 3 })
	status, h, body := do(t, "GET", at+"/v1/x", "", "")
	if status != 503 || h.Get("Retry-After") == "" || !strings.Contains(body, api.CodeOverloaded) {
		t.Errorf("status %d, Retry-After %q: %s", status, h.Get("Retry-After"), body)
	}
	close(release)
	all.Wait()
	if ok.Load() != 5 {
		t.Errorf("%d of 5 requests were answered", ok.Load())
	}
	if _, _, text := do(t, "GET", at+"/-/metrics", "", ""); !strings.Contains(text, `hydra_lb_shed_total{kind="members"} 1`) {
		t.Errorf("the metrics lack the shed requests:\n%s", text)
	}
}

func TestDrain(t *testing.T) {
	m := newMember(t, "m")
	release := make(chan struct{})
	m.answer(func(http.ResponseWriter, *http.Request) { <-release })
	c := quick()
	c.Drain, c.Grace = 300*time.Millisecond, time.Minute
	c.Members = members("home", m)
	b, at, end := start(t, c)
	if status, _, _ := do(t, "GET", at+"/-/ready", "", ""); status != 204 {
		t.Fatalf("ready: %d", status)
	}
	answered := make(chan int)
	go func() {
		status, _, _ := do(t, "POST", at+"/v1/x", "", "")
		answered <- status
	}()
	until(t, "the request has reached the backend", func() bool { return m.served.Load() == 1 })
	ended := make(chan error)
	go func() { ended <- end() }()
	until(t, "it drains", func() bool { return b.state.draining.Load() })
	if b.Ready() {
		t.Error("the balancer reports ready while it drains")
	}
	close(release)
	if status := <-answered; status != 200 {
		t.Errorf("the request in flight got status %d", status)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRoutes(t *testing.T) {
	m, app := newMember(t, "m"), newMember(t, "app")
	c := quick()
	c.Members, c.Apps = members("home", m), members("home", app)
	c.MaxBody = 10
	_, at, _ := start(t, c)
	for path, want := range map[string]string{"/v1/tables": "m", "/openapi.yaml": "m", "/": "app", "/transfer": "app"} {
		if _, h, _ := do(t, "GET", at+path, "", ""); h.Get(api.HeaderMember) != want {
			t.Errorf("%s went to %q, want %q", path, h.Get(api.HeaderMember), want)
		}
	}
	if status, _, _ := do(t, "POST", at+"/transfer", "", "more than ten bytes"); status != 413 {
		t.Errorf("a large body got status %d", status)
	}
	if status, _, text := do(t, "GET", at+"/-/backends", "", ""); status != 200 || !strings.Contains(text, m.URL) {
		t.Errorf("status %d: %s", status, text)
	}
	for path, want := range map[string]int{"/-/nothing": 404, "/-/healthy": 204, "/-/metrics": 404} {
		if status, _, _ := do(t, "GET", at+path, "", ""); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
}

func TestLargeAnswersAreStreamed(t *testing.T) {
	m := newMember(t, "m")
	large := strings.Repeat("x", 3*maxBuffered)
	m.answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) })
	c := quick()
	c.Members = members("home", m)
	_, at, _ := start(t, c)
	if status, _, body := do(t, "GET", at+"/v1/x", "", ""); status != 200 || body != large {
		t.Errorf("status %d, %d bytes", status, len(body))
	}
}

// TestEveryRequestIsAnswered checks that 500 clients get a response to each request while backends die, return,
// hang and are slow.
func TestEveryRequestIsAnswered(t *testing.T) {
	const clients, each = 500, 4
	slow, dying, well := newMember(t, "slow"), newMember(t, "dying"), newMember(t, "well")
	slow.answer(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
		}
	})
	var n atomic.Int64
	dying.answer(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%3 == 0 {
			panic(http.ErrAbortHandler)
		}
	})
	c := quick()
	c.Limit, c.Queue, c.QueueTime = 64, clients, time.Minute
	c.Members = members("home", slow, dying, well)
	_, at, _ := start(t, c)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	var failed atomic.Pointer[string]
	for i := range clients {
		all.Go(func() {
			for k := range each {
				method, key := http.MethodGet, ""
				if k%2 == 1 {
					method, key = http.MethodPost, fmt.Sprintf("%d-%d", i, k)
				}
				req, err := http.NewRequestWithContext(t.Context(), method, at+"/v1/x", strings.NewReader("{}"))
				if err == nil {
					req.Header.Set(api.HeaderRequestID, key)
					var resp *http.Response
					if resp, err = client.Do(req); err == nil {
						_, err = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if resp.StatusCode != 200 {
							err = fmt.Errorf("status %s", resp.Status)
						}
					}
				}
				if err != nil {
					text := err.Error()
					failed.Store(&text)
				}
			}
		})
	}
	until(t, "the dying backend has served more than 20 requests", func() bool { return dying.served.Load() > 20 })
	dying.Listener.Close()
	dying.CloseClientConnections()
	all.Wait()
	if why := failed.Load(); why != nil {
		t.Errorf("a request was lost: %s", *why)
	}
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"nothing":     func(*Config) {},
		"no URL":      func(c *Config) { c.Members = []Backend{{URL: "10.0.0.1:80"}} },
		"a path":      func(c *Config) { c.Members = []Backend{{URL: "http://10.0.0.1:80/x"}} },
		"twice":       func(c *Config) { c.Members = []Backend{{URL: "http://10.0.0.1:80"}, {URL: "http://10.0.0.1:80"}} },
		"no requests": func(c *Config) { c.Members, c.Limit = []Backend{{URL: "http://10.0.0.1:80"}}, 0 },
	} {
		c := quick()
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
