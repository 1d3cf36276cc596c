package balancer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/base/bodylimit"
	"skerry/internal/base/webguard"
	"skerry/systems/hydra/api"
)

const HeaderBalancer = "Hydra-Balancer"

const retryAfter = "1"

// ServeHTTP forwards the data layer's API to a member, other paths to the application, and serves /-/ itself.
func (b *Balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(HeaderBalancer, b.config.Name)
	if b.state.draining.Load() {
		w.Header().Set("Connection", "close") // the client reconnects to another balancer
	}
	if strings.HasPrefix(r.URL.Path, "/-/") {
		b.serveAdmin(w, r)
		return
	}
	p := b.poolFor(r.URL.Path)
	if p == nil {
		writeProblem(w, http.StatusNotFound, api.CodeNotFound, "no backend serves "+r.URL.Path)
		return
	}
	began := time.Now()
	code := p.serve(w, r)
	p.metrics.recordRequest(p.kind, r.Method, code, time.Since(began))
}

// guarded wraps the balancer in the guard against web pages of other sites. Links may lead to the application's pages.
func (b *Balancer) guarded(listen net.Addr) http.Handler {
	guard := webguard.New(listen, b.config.Hosts...)
	guard.Links = func(path string) bool { return b.apps != nil && b.poolFor(path) == b.apps }
	return guard.Protect(b, func(w http.ResponseWriter, err error) {
		p := api.GuardProblem(err)
		writeProblem(w, webguard.Status(err), p.Code, p.Message)
	})
}

func (b *Balancer) poolFor(path string) *pool {
	data := strings.HasPrefix(path, "/v1/")
	for _, own := range []string{"/status", "/healthz", "/readyz", "/openapi.yaml"} {
		data = data || path == own
	}
	if data || b.apps == nil {
		return b.members
	}
	return b.apps
}

func (p *pool) serve(w http.ResponseWriter, r *http.Request) int {
	body, held, err := p.room.ReadBody(w, r, p.config.MaxBody, p.config.Arrival)
	if err != nil {
		return p.writeReadError(w, err)
	}
	defer p.room.Release(held)
	if err := p.limit.enter(r.Context()); err != nil {
		p.metrics.shed.WithLabelValues(string(p.kind)).Inc()
		return writeProblem(w, http.StatusServiceUnavailable, api.CodeOverloaded, "the balancer is busy: "+err.Error())
	}
	defer p.limit.leave()
	read := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	ctx, cancel := context.WithTimeout(r.Context(), p.config.Timeout)
	defer cancel()
	a, doubt := p.send(ctx, &request{Request: r, body: body, write: !read, safe: read || r.Header.Get(api.HeaderRequestID) != ""})
	switch {
	case doubt && (a == nil || a.undone || isRetriable(a.resp.StatusCode)):
		if a != nil {
			a.close()
		}
		return writeProblem(w, http.StatusGatewayTimeout, api.CodeInDoubt,
			"the connection to a backend broke after the write was sent: it may have been executed")
	case a == nil:
		return writeProblem(w, http.StatusServiceUnavailable, api.CodeUnavailable, "no backend answers")
	}
	return a.writeTo(w)
}

func (p *pool) writeReadError(w http.ResponseWriter, err error) int {
	tooLarge := new(http.MaxBytesError)
	switch {
	case errors.As(err, &tooLarge):
		return writeProblem(w, http.StatusRequestEntityTooLarge, api.CodeTooLarge,
			"the body has more than "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes")
	case errors.Is(err, bodylimit.ErrFull):
		p.metrics.shed.WithLabelValues(string(p.kind)).Inc()
		return writeProblem(w, http.StatusServiceUnavailable, api.CodeOverloaded, "the balancer is busy: "+err.Error())
	}
	return writeProblem(w, http.StatusBadRequest, api.CodeBadRequest, "reading the body: "+err.Error())
}

func (a *attempt) writeTo(w http.ResponseWriter) int {
	defer a.close()
	removeHopHeaders(a.resp.Header)
	for name, values := range a.resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.resp.StatusCode)
	_, err := w.Write(a.body)
	if a.rest != nil && err == nil {
		if _, err = io.Copy(w, a.rest); err != nil {
			panic(http.ErrAbortHandler) // signals a truncated answer
		}
	}
	return a.resp.StatusCode
}

func writeProblem(w http.ResponseWriter, status int, code, message string) int {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(api.Problem{Code: code, Message: message})
	return status
}

var (
	errFull   = errors.New("queue is full")
	errWaited = errors.New("queue time exceeded")
)

// limiter bounds concurrent and queued requests. It rejects others at once: an unbounded queue delays every answer.
type limiter struct {
	slots   chan struct{}
	waiting atomic.Int64
	queue   int64
	wait    time.Duration
}

func newLimiter(limit, queue int, wait time.Duration) *limiter {
	return &limiter{slots: make(chan struct{}, limit), queue: int64(queue), wait: wait}
}

func (l *limiter) enter(ctx context.Context) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	if l.waiting.Add(1) > l.queue {
		l.waiting.Add(-1)
		return errFull
	}
	defer l.waiting.Add(-1)
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return errWaited
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *limiter) leave() { <-l.slots }

// BackendStatus is a backend in /-/backends.
type BackendStatus struct {
	Kind     Kind    `json:"kind"`
	URL      string  `json:"url"`
	Cloud    string  `json:"cloud"`
	Usable   bool    `json:"usable"`
	Leader   bool    `json:"leader,omitempty"`
	Draining bool    `json:"draining,omitempty"`
	Distance float64 `json:"distance_ms"`
	Inflight int64   `json:"in_flight"`
	Problem  string  `json:"problem,omitempty"`
}

func (b *Balancer) serveAdmin(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case "/-/healthy":
		w.WriteHeader(http.StatusNoContent)
	case "/-/ready":
		if !b.Ready() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case "/-/backends":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(b.Backends()) // the client may be gone
	case "/-/metrics":
		if b.config.Gatherer == nil {
			http.NotFound(w, r)
			return
		}
		promhttp.HandlerFor(b.config.Gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// Ready reports whether the balancer can serve and is not draining.
func (b *Balancer) Ready() bool {
	if b.state.draining.Load() {
		return false
	}
	for _, p := range b.pools {
		if !p.ready() {
			return false
		}
	}
	return true
}

func (b *Balancer) Backends() []BackendStatus {
	var all []BackendStatus
	for _, p := range b.pools {
		for _, x := range p.backends {
			v := x.currentView()
			all = append(all, BackendStatus{
				Kind: p.kind, URL: x.url.String(), Cloud: x.cloud, Usable: v.usable(), Leader: v.leads, Draining: v.draining,
				Distance: v.distance.Seconds() * 1000, Inflight: x.inflight.Load(), Problem: v.problem,
			})
		}
	}
	return all
}
