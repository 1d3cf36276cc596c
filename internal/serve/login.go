package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

//go:embed login.html
var loginHTML string

var loginTemplate = template.Must(template.New("login").Parse(loginHTML))

// tokenGuard lets pass who shows the token, or the cookie of a browser that has.
func (s *Server) tokenGuard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.Token == "" || r.URL.Path == "/login" || s.shown(r):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.URL.Path == "/":
			http.Redirect(w, r, "login", http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="skerry"`)
			refuse(w, http.StatusUnauthorized, "a token is needed", "log in at /login, or send the header Authorization: Bearer TOKEN")
		}
	})
}

func (s *Server) shown(r *http.Request) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && same(token, s.Token) {
		return true
	}
	c, err := r.Cookie(s.cookie())
	return err == nil && same(c.Value, s.session)
}

// same compares secrets in a time that tells nothing of them, their lengths neither.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func (s *Server) cookie() string { return fmt.Sprintf("skerry-%d", s.Port) }

func (s *Server) loginPage(w http.ResponseWriter, _ *http.Request) { askToken(w, http.StatusOK, false) }

func askToken(w http.ResponseWriter, status int, wrong bool) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginTemplate.Execute(w, wrong)
}

// tokenLimit bounds what a login may send.
const tokenLimit = 4 << 10

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, tokenLimit)
	if err := r.ParseForm(); err != nil || s.Token != "" && !same(strings.TrimSpace(r.PostForm.Get("token")), s.Token) {
		askToken(w, http.StatusUnauthorized, true)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	http.Redirect(w, r, "./", http.StatusSeeOther)
}
