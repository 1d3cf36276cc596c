package serve

import (
	"net/http"
	"net/http/httputil"

	"skerry/internal/run/live"
)

// eventLimit bounds the text of an event to be fired.
const eventLimit = 64 << 10

// follow hands on the feed of a running run as server-sent events. A browser that comes back
// says what it heard last, in the header that EventSource sends or as ?after=.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	after := r.Header.Get("Last-Event-ID")
	if q := r.URL.Query().Get("after"); after == "" {
		after = q
	}
	s.ask(w, r, "/stream", http.Header{"Last-Event-Id": {after}})
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
