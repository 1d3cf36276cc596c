package balancer

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Seen is a backend as /-/backends tells of it.
type Seen struct {
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

// own serves the balancer's own paths: /-/healthy while it runs, /-/ready while it can
// serve and is not about to end, /-/backends, /-/metrics.
func (b *Balancer) own(w http.ResponseWriter, r *http.Request) {
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
		_ = json.NewEncoder(w).Encode(b.Backends()) // to a client that may be gone
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

// Ready is whether it can serve and is to go on.
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

// Backends tells what is known of each.
func (b *Balancer) Backends() []Seen {
	var all []Seen
	for _, p := range b.pools {
		for _, x := range p.backends {
			v := x.see()
			all = append(all, Seen{
				Kind: p.kind, URL: x.url.String(), Cloud: x.cloud, Usable: v.usable(), Leader: v.leads, Draining: v.draining,
				Distance: v.distance.Seconds() * 1000, Inflight: x.inflight.Load(), Problem: v.problem,
			})
		}
	}
	return all
}
