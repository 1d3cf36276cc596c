package ca

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// Files of tokens: TokensFile has all, for members, which take them; the others hold the
// one that an application sends.
const (
	TokensFile  = "tokens"
	tokenPrefix = "token-"
)

// WriteTokens makes tokens that allow to read, to write and everything, of 256 bits each,
// and writes them into files that only their owner can read, in the lines that the API's
// server takes.
func WriteTokens(dir string) error {
	all := ""
	for _, scope := range []string{"read", "write", "admin"} {
		var secret [32]byte
		rand.Read(secret[:]) // never fails
		line := fmt.Sprintf("%s %s\n", scope, hex.EncodeToString(secret[:]))
		if err := Create(filepath.Join(dir, tokenPrefix+scope), []byte(line), 0o600); err != nil {
			return err
		}
		all += line
	}
	return Create(filepath.Join(dir, TokensFile), []byte(all), 0o600)
}
