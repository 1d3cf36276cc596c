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

// Sentinel errors of what a server is to listen on.
var (
	// ErrToken says that an address that others can reach was given without a token, or that
	// the token is too easy to guess.
	ErrToken = errors.New("the dashboard needs a token there")
)

// minTokenLength is how long a token is at least: too long to be tried out.
const minTokenLength = 16

// CheckToken tells whether a token can be one.
func CheckToken(token string) error {
	if len(token) >= minTokenLength && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil
	}
	return advice.With(fmt.Errorf("%w of %d printable characters at least, without spaces", ErrToken, minTokenLength), "make one with: openssl rand -hex 16")
}

// Listen opens an address, "host:port". One that other machines can reach needs a token.
func Listen(address, token string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, advice.With(fmt.Errorf("listening on %q: %w", address, err), "give HOST:PORT, such as 127.0.0.1:8090")
	}
	if !loopback(host) && token == "" {
		return nil, advice.With(fmt.Errorf("%w: %s can be reached from other machines, and whoever reaches the dashboard can fire events", ErrToken, address),
			"set SKERRY_TOKEN to a secret (openssl rand -hex 16), or leave the address and use: ssh -L 8090:127.0.0.1:8090 THIS-MACHINE")
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, advice.With(fmt.Errorf("listening for browsers: %w", err), "give another port, or 0 for any that is free")
	}
	if err != nil {
		return nil, fmt.Errorf("listening for browsers: %w", err)
	}
	return l, nil
}

// loopback tells whether a host is this machine, reached from itself.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL is where a browser finds what listens on an address.
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

// inheritVariable names the descriptor of a listener that a process got from the one that it
// replaced: skerry enters a network namespace without the machine's loopback where it is not
// root, and browsers are on the machine's.
const inheritVariable = "SKERRY_UI_FD"

// PassListener lets the program that is going to replace this process go on listening.
func PassListener(l net.Listener) error {
	t, ok := l.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("handing on the dashboard's listener: %T is no TCP listener", l)
	}
	f, err := t.File()
	if err != nil {
		return fmt.Errorf("handing on the dashboard's listener: %w", err)
	}
	fd, err := unix.Dup(int(f.Fd())) // without close-on-exec
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("handing on the dashboard's listener: %w", err)
	}
	return os.Setenv(inheritVariable, strconv.Itoa(fd))
}

// InheritedListener is the listener that HandOn handed on; nil where there is none.
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
		return nil, fmt.Errorf("taking over the dashboard's listener: %s=%s: %w", inheritVariable, v, err)
	}
	f := os.NewFile(uintptr(fd), "dashboard")
	l, err := net.FileListener(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("taking over the dashboard's listener: %w", err)
	}
	return l, nil
}
