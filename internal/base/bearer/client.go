package bearer

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Auto stands for the user's token file, which the user's servers and clients on this machine share.
const Auto = "auto"

// userTokensPath returns the path of the user's token file.
func userTokensPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("finding the token directory: %w", err)
	}
	return filepath.Join(dir, "skerry", "tokens"), nil
}

// createIfMissing creates a token file with a token of each scope, unless the file exists. If several servers start
// concurrently, one creates the complete file and the others use it.
func createIfMissing(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating the token directory: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-") // mode 0600
	if err != nil {
		return fmt.Errorf("creating the token file: %w", err)
	}
	_, err = f.WriteString(newTokenFile())
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		if err = os.Link(f.Name(), path); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		return fmt.Errorf("creating the token file: %w", err)
	}
	return nil
}

// newTokenFile returns the content of a token file with tokens of 256 bits.
func newTokenFile() string {
	text := "# created by --tokens auto; each token grants its scope to every reader of this file\n"
	for scope := Read; scope <= Admin; scope++ {
		var secret [32]byte
		rand.Read(secret[:]) // never fails
		text += fmt.Sprintf("%s %s\n", scope, hex.EncodeToString(secret[:]))
	}
	return text
}

// FindToken returns the token that a client sends to servers: the token of the file at path with the smallest scope
// that includes wish, else the largest smaller scope. If path is "", it uses the user's token file if that exists and all
// addresses (HOST:PORT or URL) are loopback addresses. Otherwise it returns "".
func FindToken(path string, wish Scope, addrs ...string) (string, error) {
	if path == "" {
		var err error
		if path, err = userTokensPath(); err != nil || !allLoopback(addrs) {
			return "", nil // a user without a configuration directory has no token file
		}
		if _, err := os.Stat(path); err != nil {
			return "", nil // no server created the file
		}
	}
	tokens, err := Load(path)
	if err != nil {
		return "", err
	}
	for _, scope := range []Scope{wish, Write, Read} {
		if token := tokens.TokenFor(scope); token != "" {
			return token, nil
		}
	}
	return "", fmt.Errorf("%w: %s has no usable token", ErrTokens, path)
}

// allLoopback reports whether all addresses are loopback addresses.
func allLoopback(addrs []string) bool {
	for _, a := range addrs {
		if _, rest, ok := strings.Cut(a, "://"); ok {
			a = rest
		}
		host, _, err := net.SplitHostPort(strings.TrimRight(a, "/"))
		if err != nil {
			host = strings.TrimRight(a, "/")
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return len(addrs) > 0
}

// ErrExposed is returned for an unprotected listener that other machines could reach.
var ErrExposed = errors.New("refusing to listen beyond this machine without TLS and tokens")

// CheckExposure returns ErrExposed for an address other than loopback without both TLS and tokens.
func CheckExposure(addr string, tls, tokens bool) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("invalid address %q, want host:port: %w", addr, err)
	}
	if tls && tokens || allLoopback([]string{addr}) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrExposed, addr)
}

// SentUnencrypted reports whether a token sent to one of the addresses (HOST:PORT or URL) leaves this machine without
// encryption.
func SentUnencrypted(encrypted bool, addrs ...string) bool {
	open := slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return encrypted || strings.HasPrefix(a, "https://") })
	return len(open) > 0 && !allLoopback(open)
}

// UnencryptedWarning is the log message for tokens that are sent unencrypted.
const UnencryptedWarning = "tokens are sent unencrypted and can be stolen; use TLS or a tunnel"
