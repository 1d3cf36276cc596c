package instance_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skerry/internal/testkit"
	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/instance"
)

// TestServerMoves has one of two servers come back at another address, which the file says: the
// other one, which has served all the while, asks it there, and tells clients.
func TestServerMoves(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "servers")
	first, before, after := testkit.Address(t), testkit.Address(t), testkit.Address(t)
	write := func(second string) {
		t.Helper()
		if err := os.WriteFile(file, fmt.Appendf(nil, "# of the tree\ng1=%s\ng2=%s\n", first, second), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(before)
	dir := filepath.Join(t.TempDir(), "g2")
	options := func(name, listen, dir string) instance.Options {
		return instance.Options{Listen: listen, Dir: dir, Share: &instance.Share{Name: name, Root: "g1", File: file}}
	}
	run(t, options("g1", first, filepath.Join(t.TempDir(), "g1")))
	_, stop := run(t, options("g2", before, dir))
	c := client.New(first)
	defer c.Close()
	for _, line := range []string{"mkdir /far", "delegate /far g2", "create /far/x"} {
		if r := one(t, c, line); r.Err != nil {
			t.Fatalf("%s: %v", line, r.Err)
		}
	}
	stop()
	write(after)
	run(t, options("g2", after, dir))
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		r := one(t, c, "ls /far")
		if r.Err == nil {
			if len(r.Entries) != 1 || r.Entries[0].Name != "x" {
				t.Errorf("what it has: %+v", r.Entries)
			}
			break
		}
		if !errors.Is(r.Err, metadata.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatal(r.Err)
		}
	}
	if s, err := c.Status(t.Context()); err != nil || s.Servers["g2"] != after {
		t.Errorf("clients are told of %v, %v", s.Servers, err)
	}
}
