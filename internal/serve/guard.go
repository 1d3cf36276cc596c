package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/webguard"
)

// csrfHeader is required of every request that changes something. It holds a secret that only pages
// of this server can read. Forms, images and scripts of other sites cannot set it.
const csrfHeader = "X-Skerry-Csrf"

// contentPolicy lets pages load files of this server only. Charts set styles of elements. Injected
// style sheets, scripts and frames are blocked.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

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

// siteGuard rejects cross-site requests except links to pages, and changes without the CSRF header.
// Without a token it also rejects foreign host names, which prevents DNS rebinding.
func (s *Server) siteGuard(next http.Handler) http.Handler {
	guard := webguard.New(nil)
	guard.AnyHost = s.Token != ""
	guard.Links = func(path string) bool { return !strings.HasPrefix(path, "/api/") }
	return guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		changes := r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != "/login"
		if changes && subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(s.csrf)) != 1 {
			writeRefusal(w, http.StatusForbidden, "the request does not come from a page of this server",
				"send the header "+csrfHeader+" with the csrf of /api/session; reload pages that were open before the server restarted")
			return
		}
		next.ServeHTTP(w, r)
	}), func(w http.ResponseWriter, err error) {
		hint := advice.Of(err)
		if errors.Is(err, webguard.ErrHost) {
			hint = "use localhost or 127.0.0.1, or set a token (SKERRY_TOKEN) to use another name"
		}
		writeRefusal(w, webguard.Status(err), err.Error(), hint)
	})
}

//go:embed login.html
var loginHTML string

var loginTemplate = template.Must(template.New("login").Parse(loginHTML))

// tokenGuard requires the token, or the cookie of a browser that logged in.
func (s *Server) tokenGuard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.Token == "" || r.URL.Path == "/login" || s.isAuthenticated(r):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.URL.Path == "/":
			http.Redirect(w, r, "login", http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="skerry"`)
			writeRefusal(w, http.StatusUnauthorized, "token required", "log in at /login, or send the header Authorization: Bearer TOKEN")
		}
	})
}

func (s *Server) isAuthenticated(r *http.Request) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && equalSecrets(token, s.Token) {
		return true
	}
	c, err := r.Cookie(s.cookieName())
	return err == nil && equalSecrets(c.Value, s.session)
}

// equalSecrets compares secrets in constant time, independent of their lengths.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func (s *Server) cookieName() string { return fmt.Sprintf("skerry-%d", s.Port) }

func (s *Server) loginPage(w http.ResponseWriter, _ *http.Request) {
	writeLoginPage(w, http.StatusOK, false)
}

func writeLoginPage(w http.ResponseWriter, status int, wrong bool) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; "+
		"base-uri 'none'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginTemplate.Execute(w, wrong)
}

const tokenLimit = 4 << 10

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, tokenLimit)
	if err := r.ParseForm(); err != nil || s.Token != "" && !equalSecrets(strings.TrimSpace(r.PostForm.Get("token")), s.Token) {
		writeLoginPage(w, http.StatusUnauthorized, true)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: s.session, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	http.Redirect(w, r, "./", http.StatusSeeOther)
}
