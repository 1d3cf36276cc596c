package bearer

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Servers start at the same time with their user's tokens: all use the same file, whose tokens the user's clients send
// only to loopback, and no other user can read it.
func TestAuto(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	if token, err := FindToken("", Write, "127.0.0.1:8080"); token != "" || err != nil {
		t.Errorf("before any server: %q, %v", token, err)
	}
	all := make([]*Tokens, 8)
	var began sync.WaitGroup
	for i := range all {
		began.Go(func() {
			var err error
			if all[i], err = Load(Auto); err != nil {
				t.Error(err)
			}
		})
	}
	began.Wait()
	path := filepath.Join(dir, "skerry", "tokens")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
	for wish := Read; wish <= Admin; wish++ {
		token, err := FindToken("", wish, "127.0.0.1:8080", "http://localhost:1/", "[::1]:7070", "https://127.77.1.1:7070")
		if err != nil || len(token) < minToken {
			t.Fatalf("%v: %q, %v", wish, token, err)
		}
		for i, tokens := range all {
			if got := tokens.Scope("Bearer " + token); got != wish {
				t.Errorf("server %d maps the token for %v to scope %v", i, wish, got)
			}
		}
	}
	for _, addrs := range [][]string{nil, {"10.0.0.1:8080"}, {"127.0.0.1:8080", "10.0.0.1:8080"}, {"localhost.evil.example:80"}, {"http://evil.example/?127.0.0.1:80"}, {"0.0.0.0:80"}} {
		if token, err := FindToken("", Read, addrs...); token != "" || err != nil {
			t.Errorf("%v is sent %q, %v", addrs, token, err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Auto); !errors.Is(err, ErrTokens) {
		t.Errorf("a file that others can read: %v", err)
	}
}

func TestNoTokens(t *testing.T) {
	var none *Tokens
	if none.Scope("") != Admin || none.TokenFor(Read) != "" {
		t.Error("without tokens: want all requests allowed and no token sent")
	}
}

func TestSentUnencrypted(t *testing.T) {
	for _, tt := range []struct {
		encrypted bool
		addrs     []string
		want      bool
	}{
		{false, []string{"10.0.0.1:7070"}, true},
		{true, []string{"10.0.0.1:7070"}, false},
		{false, []string{"127.0.0.1:7070", "localhost:7071"}, false},
		{false, []string{"127.0.0.1:7070", "db.example:7071"}, true},
		{false, []string{"https://10.0.0.1:7070", "http://[::1]:7070"}, false},
		{false, []string{"https://10.0.0.1:7070", "http://10.0.0.2:7070"}, true},
		{false, []string{"0.0.0.0:0"}, true},
		{false, nil, false},
	} {
		if got := SentUnencrypted(tt.encrypted, tt.addrs...); got != tt.want {
			t.Errorf("%v %v: %v", tt.encrypted, tt.addrs, got)
		}
	}
}
