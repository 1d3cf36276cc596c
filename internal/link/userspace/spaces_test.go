package userspace

import (
	"os"
	"path/filepath"
	"testing"

	"skerry/internal/link"
)

// A namespace counts as removed if its path is missing or refers to another one. deserted reports a lab without any
// remaining namespace.
func TestUnreachable(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for _, path := range []string{a, b, b + "2"} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var s namespaces
	if s.unreachable() {
		t.Error("deserted without any link")
	}
	s.add([]link.Spec{{A: link.End{Netns: a}, B: link.End{Netns: b}}})
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if s.unreachable() {
		t.Error("deserted with one remaining namespace")
	}
	if err := os.Rename(b+"2", b); err != nil {
		t.Fatal(err)
	}
	if !s.unreachable() {
		t.Error("not deserted although one path is missing and one refers to another namespace")
	}
}
