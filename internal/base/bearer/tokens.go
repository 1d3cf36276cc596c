// Package bearer is the bearer tokens that servers take, and their files: who holds one may read, or
// write too, or do everything.
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

// Scope is what a token allows; each allows what those before it do.
type Scope int

// Scopes. Public needs no token.
const (
	Public Scope = iota
	Read
	Write
	Admin
)

var scopeNames = []string{"public", "read", "write", "admin"}

// String is the scope's name.
func (s Scope) String() string { return scopeNames[s] }

// ErrTokens marks a file of tokens that cannot be used.
var ErrTokens = errors.New("bad file of tokens")

// Tokens are those that a server takes. No tokens at all allow everything.
type Tokens struct{ list []token }

type token struct {
	text  string
	sum   [sha256.Size]byte
	scope Scope
}

// minToken is the least length of a token: 128 bits as hexadecimal digits.
const minToken = 32

// Load reads a file that only its owner can read, with lines of a scope (read,
// write or admin) and a token:
//
//	# the application
//	write 5e8d3c...
//
// The path Auto is the user's own file, which is made where it is missing.
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
		err := fmt.Errorf("%w: %s can be read by others (mode %04o)", ErrTokens, path, info.Mode().Perm())
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

// Parse reads the lines of a file of tokens. Errors do not hold the tokens.
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
			return nil, fmt.Errorf("%w: line %d is not a scope (read, write or admin) and a token", ErrTokens, n)
		}
		if len(words[1]) < minToken {
			return nil, fmt.Errorf("%w: the token in line %d has less than %d characters", ErrTokens, n, minToken)
		}
		t.list = append(t.list, token{words[1], sha256.Sum256([]byte(words[1])), scope})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTokens, err)
	}
	if len(t.list) == 0 {
		return nil, fmt.Errorf("%w: it holds none", ErrTokens)
	}
	return t, nil
}

// Scope is what an Authorization header allows: everything where there are no tokens. It takes the
// same time for every token that is wrong: digests are compared, all of them, in constant time.
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

// TokenFor is a token of the least scope that is enough, for requests of a member to others
// with the same file; "" when there is none.
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
