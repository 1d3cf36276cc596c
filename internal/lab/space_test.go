package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/test/testkit/testhost"
)

// The state directory may be in a shared mount, as /run is with systemd. Namespaces are mounted once nevertheless.
func TestNamespacesAreMountedOnce(t *testing.T) {
	c := config(t, "shared")
	mount := filepath.Join(filepath.Dir(c.StateDir), "run")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", mount, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	c.StateDir = filepath.Join(mount, "state")
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	for _, n := range c.Topology.Nodes {
		path := placeOf(t, c).Namespace(n.Name)
		if got := strings.Count(string(mounts), " "+path+" "); got != 1 {
			t.Errorf("%s is mounted %d times", path, got)
		}
	}
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	for _, trace := range testhost.FindLeftovers(t, c.Name, mount) {
		t.Errorf("left: %s", trace)
	}
}
