package flock_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/base/flock"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func isHeld(t *testing.T, path string) bool {
	t.Helper()
	yes, err := flock.IsHeld(path)
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

// TestCopies keeps a copy of a locked descriptor beyond the lock, like a forked child before its exec.
func TestCopies(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	l, err := flock.Acquire(f)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if _, err := flock.Acquire(open(t, dir)); !errors.Is(err, flock.ErrHeld) || !isHeld(t, dir) {
		t.Errorf("locking a held lock: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if isHeld(t, dir) {
		t.Error("the copy holds the lock")
	}
	if l, err = flock.Acquire(open(t, dir)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
