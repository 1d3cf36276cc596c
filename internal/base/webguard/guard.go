// Package webguard prevents web pages from using services that listen on this machine, and from reading their
// responses. A browser runs on this machine, so it reaches loopback, and every visited page can make it send requests.
//
//	request ─► Host names this server? ──no──► 421: a name that resolves to this server (DNS rebinding)
//	               └─► same origin, or not sent by a page? ──no──► 403: a page of another site
//	                       └─► the service
//
// The headers Host, Sec-Fetch-Site and Origin identify the sender, and no script can set them. Programs such as curl send
// neither Sec-Fetch-Site nor Origin.
package webguard

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"skerry/internal/base/advice"
)

// Errors of rejected requests.
var (
	ErrHost = errors.New("unknown host name of this server")
	ErrSite = errors.New("request from a page of another site")
)

// Guard decides which requests a server accepts. Set its fields before the first request.
type Guard struct {
	names     map[string]bool
	addresses map[netip.Addr]bool
	// anyAddress is true if other machines can reach the server.
	anyAddress bool
	// AnyHost accepts every host name, for servers that require a token from every client. A page with a rebound name
	// does not have the token.
	AnyHost bool
	// Links, if set, reports whether links of other sites may lead to a path.
	Links func(path string) bool
}

// New returns a guard for a server that listens at an address (nil for loopback) and has further names and addresses.
// Ports are ignored.
//
// A server that listens on loopback only accepts localhost, loopback addresses and the known names. Any other server
// accepts every address, because address translation, balancers and tunnels use addresses that the server does not
// know. This is safe: an address cannot be rebound, so a page whose host is an address came from that address.
func New(listen net.Addr, known ...string) *Guard {
	g := &Guard{names: map[string]bool{"localhost": true}, addresses: make(map[netip.Addr]bool)}
	if listen != nil {
		a, err := parseAddress(hostOf(listen.String()))
		g.anyAddress = err != nil || !a.IsLoopback()
	}
	for _, k := range known {
		if a, err := parseAddress(hostOf(k)); err == nil {
			g.addresses[a] = true
		} else {
			g.names[hostOf(k)] = true
		}
	}
	return g
}

// hostOf returns the host of "host", "host:port", "[v6]" or "[v6]:port", in lower case and without a trailing dot.
func hostOf(text string) string {
	host := text
	if h, _, err := net.SplitHostPort(text); err == nil {
		host = h
	} else if strings.HasPrefix(host, "[") {
		host = strings.Trim(host, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func parseAddress(host string) (netip.Addr, error) {
	a, err := netip.ParseAddr(host)
	return a.Unmap().WithZone(""), err
}

// AllowsHost reports whether the server accepts a Host header. Browsers always send one.
func (g *Guard) AllowsHost(host string) bool {
	if host == "" || g.AnyHost {
		return true
	}
	name := hostOf(host)
	if a, err := parseAddress(name); err == nil {
		return g.anyAddress || a.IsLoopback() || g.addresses[a]
	}
	return g.names[name]
}

// Check returns ErrHost for an unknown host and ErrSite for a request of another site.
func (g *Guard) Check(r *http.Request) error {
	if !g.AllowsHost(r.Host) {
		return advice.With(fmt.Errorf("%w: %.100q", ErrHost, r.Host),
			"use localhost or the listen address; add further names with --host")
	}
	if isSameOrigin(r) || g.isPageLink(r) {
		return nil
	}
	return advice.With(ErrSite, "do not send Origin and Sec-Fetch-Site from a program")
}

// isSameOrigin reports whether a request is from the server's own pages, from its user, or from a program.
func isSameOrigin(r *http.Request) bool {
	sites := r.Header["Sec-Fetch-Site"]
	for _, site := range sites {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	if len(sites) > 0 && sites[0] == "same-origin" {
		return true // behind a proxy, Host may differ from the page's host
	}
	for _, origin := range r.Header["Origin"] {
		// Browsers send only Origin if the server is neither https nor loopback. "null" is a page that hides its origin.
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	return true
}

// isPageLink reports whether a request navigates the browser's window to a page of this server.
func (g *Guard) isPageLink(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest") // frames have another value
	return g.Links != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && (dest == "document" || dest == "") && g.Links(r.URL.Path)
}

// Status returns the HTTP status for an error of Check.
func Status(err error) int {
	if errors.Is(err, ErrHost) {
		return http.StatusMisdirectedRequest
	}
	return http.StatusForbidden
}

// Protect returns a handler that rejects requests with refuse (nil for WritePlain) and passes the others to next.
func (g *Guard) Protect(next http.Handler, refuse func(http.ResponseWriter, error)) http.Handler {
	if refuse == nil {
		refuse = WritePlain
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.Check(r); err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// WritePlain writes an error of Check as text.
func WritePlain(w http.ResponseWriter, err error) {
	http.Error(w, err.Error()+"\n"+advice.Of(err), Status(err))
}
