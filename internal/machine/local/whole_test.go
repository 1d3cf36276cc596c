package local

import (
	"errors"
	"path/filepath"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
)

// Without root, the machine itself cannot be a node.
func TestWholeNeedsRoot(t *testing.T) {
	t.Setenv("SKERRY_ROOTLESS", "1")
	dir := t.TempDir()
	m, err := New(Config{State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data"), Exe: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Prepare(t.Context(), machine.PartSpec{Lab: "whole", Engine: emulator.Userspace, Owned: true, Whole: true})
	if !errors.Is(err, errWhole) || advice.Of(err) == "" {
		t.Errorf("%v (%s)", err, advice.Of(err))
	}
}
