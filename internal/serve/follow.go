package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/record"
	"skerry/internal/run/live"
)

// eventLimit bounds the text of an event to be fired.
const eventLimit = 64 << 10

// beginning is how long a run may take from its directory to its feed, and beginningPause how long it is let be.
const beginning, beginningPause = 10 * time.Second, 50 * time.Millisecond

// follow hands on the feed of a running run as server-sent events. A browser that comes back
// says what it heard last, in the header that EventSource sends or as ?after=.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	after := r.Header.Get("Last-Event-ID")
	if q := r.URL.Query().Get("after"); after == "" {
		after = q
	}
	if dir, err := s.runs.path(r.PathValue("run")); err == nil {
		awaitFeed(r.Context(), dir)
	}
	s.ask(w, r, "/stream", http.Header{"Last-Event-Id": {after}})
}

// awaitFeed waits until a run that was just made tells of itself: its directory is there a moment before.
// Where it does not, the asking tells why.
func awaitFeed(ctx context.Context, dir string) {
	ctx, cancel := context.WithTimeout(ctx, beginning)
	defer cancel()
	for errors.Is(live.CheckLive(ctx, dir), live.ErrNotLive) && record.Running(dir) {
		if linger.For(ctx, beginningPause) != nil {
			return
		}
	}
}

// fire hands an event to the run, which answers with what became of it.
func (s *Server) fire(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, eventLimit)
	s.ask(w, r, "/events", http.Header{"Content-Type": {"application/json"}})
}

// ask passes a request to the socket of a run, with no header of the browser's.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, path string, header http.Header) {
	dir, err := s.runs.path(r.PathValue("run"))
	if err != nil {
		fail(w, err)
		return
	}
	transport := live.Transport(dir)
	defer transport.CloseIdleConnections()
	(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.URL.Path, p.Out.URL.RawPath, p.Out.URL.RawQuery = "http", "run", path, "", ""
			p.Out.Host, p.Out.Header = "run", header
		},
		ErrorLog:     nil,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { fail(w, err) },
	}).ServeHTTP(w, r)
}
