package serve

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// csrfHeader carries, on every request that changes something, what only a page of this server
// can have read. No form, image or script of another site can set it.
const csrfHeader = "X-Skerry-Csrf"

// contentPolicy lets pages load what this server has, and nothing else. Charts set styles of
// elements; no style sheet, script or frame can be put in.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// headers tells browsers what this server's answers may do.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// hostGuard refuses requests to a name that is not this machine's own, without a token: a page
// of another site whose name was made to point here would otherwise be of this origin.
func (s *Server) hostGuard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if s.Token == "" && !loopback(strings.Trim(host, "[]")) {
			refuse(w, http.StatusMisdirectedRequest, "this server answers to localhost and 127.0.0.1 alone", "give it a token (SKERRY_TOKEN) to reach it by another name")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// siteGuard refuses what another site's page asks for: to change anything, and to read data.
// Following a link to a page is no harm.
func (s *Server) siteGuard(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := protection.Check(r); err != nil {
			refuse(w, http.StatusForbidden, "a page of another site may change nothing here", "")
			return
		}
		site := r.Header.Get("Sec-Fetch-Site")
		if strings.HasPrefix(r.URL.Path, "/api/") && (site == "cross-site" || site == "same-site") {
			refuse(w, http.StatusForbidden, "a page of another site may read nothing here", "")
			return
		}
		changes := r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != "/login"
		if changes && subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(s.csrf)) != 1 {
			refuse(w, http.StatusForbidden, "the request does not come from a page of this server", "send the header "+csrfHeader+" with the csrf of /api/session; a page that was open before the server was restarted is to be loaded again")
			return
		}
		next.ServeHTTP(w, r)
	})
}
