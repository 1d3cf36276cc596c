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

// Auto, in place of a file's path, is the file of tokens that the user's own servers on this
// machine take and the user's own clients find.
const Auto = "auto"

// userTokensPath is the path of that file.
func userTokensPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("finding the directory for tokens: %w", err)
	}
	return filepath.Join(dir, "skerry", "tokens"), nil
}

// createIfMissing makes a file of tokens, one of each scope, where it is missing. Of servers that begin at
// once one makes it, as a whole, and the others take that.
func createIfMissing(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the directory for tokens: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-") // which has mode 0600
	if err != nil {
		return fmt.Errorf("making a file of tokens: %w", err)
	}
	_, err = f.WriteString(newTokenFile())
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		if err = os.Link(f.Name(), path); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		return fmt.Errorf("making a file of tokens: %w", err)
	}
	return nil
}

// newTokenFile are the lines of a file of tokens of 256 bits each.
func newTokenFile() string {
	text := "# made by --tokens auto; whoever reads this file may do as the lines say\n"
	for scope := Read; scope <= Admin; scope++ {
		var secret [32]byte
		rand.Read(secret[:]) // never fails
		text += fmt.Sprintf("%s %s\n", scope, hex.EncodeToString(secret[:]))
	}
	return text
}

// FindToken is what a client sends to servers: of a file, the token of the least scope that is enough
// for wish, else the one that comes nearest. Without a file ("") it is the user's own where there
// is one and all addresses (HOST:PORT, or URLs) are of loopback, else none.
func FindToken(path string, wish Scope, addrs ...string) (string, error) {
	if path == "" {
		var err error
		if path, err = userTokensPath(); err != nil || !allLoopback(addrs) {
			return "", nil // a user without a directory has no file there
		}
		if _, err := os.Stat(path); err != nil {
			return "", nil // nobody has made one
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
	return "", fmt.Errorf("%w: %s holds none that is of use", ErrTokens, path)
}

// allLoopback tells whether all addresses are of this machine, as nobody else reaches it.
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

// ErrExposed says that a listener would be open to others.
var ErrExposed = errors.New("refusing to listen beyond this machine without TLS and tokens")

// CheckExposure refuses an address that is not loopback's unless it is protected.
func CheckExposure(addr string, tls, tokens bool) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("address %q is not host:port: %w", addr, err)
	}
	if tls && tokens || allLoopback([]string{addr}) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrExposed, addr)
}

// SentUnencrypted tells whether a token that is sent to one of these addresses (HOST:PORT, or URLs), or
// taken there, passes networks that others read: nothing encrypts it, and not all are of loopback.
func SentUnencrypted(encrypted bool, addrs ...string) bool {
	open := slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return encrypted || strings.HasPrefix(a, "https://") })
	return len(open) > 0 && !allLoopback(open)
}

// UnencryptedWarning is what there is to say then.
const UnencryptedWarning = "tokens pass the network unencrypted: who reads it can use them; have TLS, or a tunnel"
