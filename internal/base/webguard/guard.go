// Package webguard keeps web pages from acting on services that listen on this machine, and
// from reading what they answer. A browser is a program of this machine: it reaches loopback, and
// whatever page its user visits has it send requests.
//
//	request ─► Host is one of the server's? ──no──► 421: a name that was made to point here (DNS rebinding)
//	               └─► of the same origin, or of no page? ──no──► 403: a page of another site
//	                       └─► the service
//
// Browsers tell: Host has the name that the page used, Sec-Fetch-Site and Origin where a request
// comes from, and no script can set these three. Programs such as curl say neither of the last two.
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

// Reasons for which a request is refused.
var (
	ErrHost = errors.New("this server does not answer to that name")
	ErrSite = errors.New("a page of another site may do and read nothing here")
)

// Guard is what a server answers to. Its fields are set before it is used.
type Guard struct {
	names     map[string]bool
	addresses map[netip.Addr]bool
	// anyAddress is set where the server can be reached from other machines.
	anyAddress bool
	// AnyHost has it answer to every name: of a server that asks everyone for a token, which a page
	// of a name that was made to point here does not have.
	AnyHost bool
	// Links, where it is set, tells the paths of pages, to which links of other sites may lead.
	Links func(path string) bool
}

// New guards a server that listens at an address (nil: on loopback), and is known by further
// names and addresses, of which a port is left out.
//
// A server that listens on loopback alone answers to localhost, to loopback's addresses, and to
// what it is known by; one that does not answers to every address, since address translation,
// balancers and tunnels lead to it by others than its own. That opens nothing: an address cannot
// be made to point elsewhere, so that a page whose host is one came from there.
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

// hostOf is the host of "host", "host:port", "[v6]" and "[v6]:port", in lower case and without
// the dot that a name may end with.
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

// AllowsHost tells whether the server answers to a request's Host. One without it is no browser's.
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

// Check refuses a request to a foreign host, with ErrHost, and one that says that it comes from
// another site, with ErrSite.
func (g *Guard) Check(r *http.Request) error {
	if !g.AllowsHost(r.Host) {
		return advice.With(fmt.Errorf("%w: %.100q", ErrHost, r.Host), "ask for localhost or the address that it listens at; the option --host has it answer to a further name")
	}
	if isSameOrigin(r) || g.isPageLink(r) {
		return nil
	}
	return advice.With(ErrSite, "a program must not send Origin and Sec-Fetch-Site")
}

// isSameOrigin tells whether a request is of the server's own pages, of its user, or of a program.
func isSameOrigin(r *http.Request) bool {
	sites := r.Header["Sec-Fetch-Site"]
	for _, site := range sites {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	if len(sites) > 0 && sites[0] == "same-origin" {
		return true // a proxy before the server may have another Host than its page
	}
	for _, origin := range r.Header["Origin"] {
		// Browsers say where a request comes from in Origin alone where the server is neither
		// https nor loopback. "null" is a page that hides it.
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	return true
}

// isPageLink tells whether a request is a browser's that shows its user a page in place of another.
func (g *Guard) isPageLink(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest") // frames are another
	return g.Links != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && (dest == "document" || dest == "") && g.Links(r.URL.Path)
}

// Status is the HTTP status of what Check returns.
func Status(err error) int {
	if errors.Is(err, ErrHost) {
		return http.StatusMisdirectedRequest
	}
	return http.StatusForbidden
}

// Protect is a handler behind the guard. What is refused is answered by refuse, nil for Plain.
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

// WritePlain answers with an error as text.
func WritePlain(w http.ResponseWriter, err error) {
	http.Error(w, err.Error()+"\n"+advice.Of(err), Status(err))
}
