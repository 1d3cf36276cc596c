package userspace_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link"
	"skerry/test/testkit"
)

// An emulator without an owner exits when its namespaces are unreachable, and logs the reason.
func TestEmulatorEndsWithNamespaces(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	o := options(t)
	o.ExitWithOwner = false
	e := start(t, o)
	a, b, c := mounted(t, "a"), mounted(t, "b"), mounted(t, "c")
	first, second := spec(a, b), spec(b, c)
	second.ID, second.A.Device, second.B.Device = "b~c", "bc", "bc"
	if err := e.Create(t.Context(), []link.Spec{first, second}); err != nil {
		t.Fatal(err)
	}
	// For one namespace only the mount is removed, for the other also the file below it.
	unmount(t, a)
	unmount(t, b)
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	unmount(t, c)
	select {
	case <-e.Done():
	case <-time.After(time.Minute):
		t.Fatal("the emulator keeps running without a namespace")
	}
	await(t, "the removal of the socket", func() bool { _, err := os.Stat(o.Socket); return os.IsNotExist(err) })
	if log, err := os.ReadFile(o.LogFile); err != nil || !bytes.Contains(log, []byte("no path leads to its links' network namespaces")) {
		t.Errorf("got output %q, %v", log, err)
	}
}

// mounted is the path at which a new namespace is mounted, as in a lab.
func mounted(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(testkit.Namespace(t).Path(), path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) }) // the test may have unmounted it
	return path
}

func unmount(t *testing.T, path string) {
	t.Helper()
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
}
