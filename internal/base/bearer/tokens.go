// Package bearer implements bearer tokens and token files. A token has a scope: read, write or admin.
package bearer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"skerry/internal/base/advice"
)

// Scope is a permission. Each scope includes the scopes before it.
type Scope int

// Scopes. Public needs no token.
const (
	Public Scope = iota
	Read
	Write
	Admin
)

var scopeNames = []string{"public", "read", "write", "admin"}

// String returns the name of the scope.
func (s Scope) String() string { return scopeNames[s] }

// ErrTokens is returned for an invalid token file.
var ErrTokens = errors.New("invalid token file")

// Tokens are the tokens that a server accepts. A nil *Tokens allows everything.
type Tokens struct{ list []token }

type token struct {
	text  string
	sum   [sha256.Size]byte
	scope Scope
}

// minToken is the minimum length of a token: 128 bits in hexadecimal digits.
const minToken = 32

// Load reads a token file, which only its owner may be able to read. Each line has a scope (read, write or admin) and a
// token:
//
//	# the application
//	write 5e8d3c...
//
// The path Auto is the user's token file. Load creates it if it does not exist.
func Load(path string) (*Tokens, error) {
	if path == Auto {
		var err error
		if path, err = userTokensPath(); err == nil {
			err = createIfMissing(path)
		}
		if err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		err := fmt.Errorf("%w: other users can read %s (mode %04o)", ErrTokens, path, info.Mode().Perm())
		return nil, advice.With(err, "chmod 600 %s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	t, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return t, nil
}

// Parse parses a token file. Errors do not contain tokens.
func Parse(text []byte) (*Tokens, error) {
	t := &Tokens{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		scope := Scope(slices.Index(scopeNames, words[0]))
		if len(words) != 2 || scope <= Public {
			return nil, fmt.Errorf("%w: line %d: want a scope (read, write or admin) and a token", ErrTokens, n)
		}
		if len(words[1]) < minToken {
			return nil, fmt.Errorf("%w: line %d: token has less than %d characters", ErrTokens, n, minToken)
		}
		t.list = append(t.list, token{words[1], sha256.Sum256([]byte(words[1])), scope})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTokens, err)
	}
	if len(t.list) == 0 {
		return nil, fmt.Errorf("%w: no tokens", ErrTokens)
	}
	return t, nil
}

// Scope returns the scope that an Authorization header grants; Admin if t is nil. It takes the same time for every
// wrong token, because it compares the digests of all tokens in constant time.
func (t *Tokens) Scope(header string) Scope {
	if t == nil {
		return Admin
	}
	given, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return Public
	}
	sum := sha256.Sum256([]byte(given))
	found := Public
	for i := range t.list {
		if subtle.ConstantTimeCompare(sum[:], t.list[i].sum[:]) == 1 {
			found = max(found, t.list[i].scope)
		}
	}
	return found
}

// TokenFor returns the token with the smallest sufficient scope, or "". Members use it for requests to other members
// with the same token file.
func (t *Tokens) TokenFor(enough Scope) string {
	if t == nil {
		return ""
	}
	best := -1
	for i, k := range t.list {
		if k.scope >= enough && (best < 0 || k.scope < t.list[best].scope) {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return t.list[best].text
}
