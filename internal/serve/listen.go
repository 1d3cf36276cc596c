package serve

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
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
