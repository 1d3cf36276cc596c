package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/base/webguard"
)

var (
	// ErrToken means that a public address has no token, or that the token is too short.
	ErrToken = errors.New("the dashboard needs a token")
)

// minTokenLength makes guessing infeasible.
const minTokenLength = 16

// CheckToken reports whether a token is acceptable.
func CheckToken(token string) error {
	if len(token) >= minTokenLength && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil
	}
	return advice.With(fmt.Errorf("%w of at least %d printable characters without spaces", ErrToken, minTokenLength),
		"create one with: openssl rand -hex 16")
}

// Listen opens the address "host:port". An address that other machines can reach needs a token.
func Listen(address, token string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, advice.With(fmt.Errorf("listen on %q: %w", address, err), "use HOST:PORT, such as 127.0.0.1:8090")
	}
	if !loopback(host) && token == "" {
		return nil, advice.With(fmt.Errorf("%w: other machines can reach %s, and every client can fire events", ErrToken, address),
			"set SKERRY_TOKEN to a secret (openssl rand -hex 16), or keep the default address and use: ssh -L 8090:127.0.0.1:8090 THIS-MACHINE")
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, advice.With(fmt.Errorf("listen for browsers: %w", err), "use another port, or 0 for any free port")
	}
	if err != nil {
		return nil, fmt.Errorf("listen for browsers: %w", err)
	}
	return l, nil
}

// IsLoopback reports whether only this machine can reach a listener.
func IsLoopback(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// loopback reports whether a host name or address is local to this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL returns the address for a browser.
func URL(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return "http://" + a.String() + "/"
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// inheritVariable names the file descriptor of a listener inherited from the process that this one
// replaced. Without root, skerry enters a network namespace without the machine's loopback device,
// where browsers cannot connect.
const inheritVariable = "SKERRY_UI_FD"

// PassListener keeps a listener open for the program that replaces this process by exec.
func PassListener(l net.Listener) error {
	t, ok := l.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("pass dashboard listener: %T is not a TCP listener", l)
	}
	f, err := t.File()
	if err != nil {
		return fmt.Errorf("pass dashboard listener: %w", err)
	}
	fd, err := unix.Dup(int(f.Fd())) // without close-on-exec
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("pass dashboard listener: %w", err)
	}
	return os.Setenv(inheritVariable, strconv.Itoa(fd))
}

// InheritedListener returns the listener of PassListener, nil if there is none.
func InheritedListener() (net.Listener, error) {
	v := os.Getenv(inheritVariable)
	if v == "" {
		return nil, nil
	}
	if err := os.Unsetenv(inheritVariable); err != nil {
		return nil, err
	}
	fd, err := strconv.Atoi(v)
	if err != nil {
		return nil, fmt.Errorf("inherit dashboard listener: %s=%s: %w", inheritVariable, v, err)
	}
	f := os.NewFile(uintptr(fd), "dashboard")
	l, err := net.FileListener(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("inherit dashboard listener: %w", err)
	}
	return l, nil
}

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
