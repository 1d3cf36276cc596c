package serve

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/webguard"
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

// siteGuard refuses what another site's page asks for, but for links to pages; requests to a
// name that is not this machine's own where no token is asked for, without which a page whose name
// was made to point here has nothing; and changes that no page of this server asks for.
func (s *Server) siteGuard(next http.Handler) http.Handler {
	guard := webguard.New(nil)
	guard.AnyHost = s.Token != ""
	guard.Links = func(path string) bool { return !strings.HasPrefix(path, "/api/") }
	return guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		changes := r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != "/login"
		if changes && subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(s.csrf)) != 1 {
			refuse(w, http.StatusForbidden, "the request does not come from a page of this server", "send the header "+csrfHeader+" with the csrf of /api/session; a page that was open before the server was restarted is to be loaded again")
			return
		}
		next.ServeHTTP(w, r)
	}), func(w http.ResponseWriter, err error) {
		hint := advice.Of(err)
		if errors.Is(err, webguard.ErrHost) {
			hint = "ask for localhost or 127.0.0.1, or give the server a token (SKERRY_TOKEN) to reach it by another name"
		}
		refuse(w, webguard.Status(err), err.Error(), hint)
	})
}
