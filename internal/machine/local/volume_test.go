package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/topology"
	"skerry/test/testkit"
)

func needVolume(t *testing.T, v topology.Volume) {
	t.Helper()
	testkit.Need(t, testkit.Root)
	if err := CheckVolume(v); err != nil {
		testkit.Lacks(t, testkit.LoopVolumes, err)
	}
}

func mountedVolume(t *testing.T, v topology.Volume) (dir, backing string) {
	t.Helper()
	needVolume(t, v)
	base := t.TempDir()
	dir, backing = filepath.Join(base, "node"), filepath.Join(base, "volume")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	switch err := mountVolume(v, dir, backing); {
	case errors.Is(err, ErrNoOverlay):
		testkit.Lacks(t, testkit.OverlayVolumes, err)
	case errors.Is(err, ErrNoLoop):
		testkit.Lacks(t, testkit.LoopVolumes, err)
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir, backing
}

func TestVolumes(t *testing.T) {
	for _, v := range []topology.Volume{
		{Kind: topology.BindVolume}, {Kind: topology.OverlayVolume}, {Kind: topology.LoopVolume, Size: 64 << 20},
	} {
		t.Run(v.Kind, func(t *testing.T) {
			dir, backing := mountedVolume(t, v)
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("initial entries %v, %v", entries, err)
			}
			if err := os.WriteFile(filepath.Join(dir, "x"), []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			at := map[string]string{topology.BindVolume: "x", topology.OverlayVolume: "upper/x"}[v.Kind]
			if at != "" {
				if data, err := os.ReadFile(filepath.Join(backing, at)); err != nil || string(data) != "kept" {
					t.Errorf("below the volume: %q, %v", data, err)
				}
			}
		})
	}
}

// A file system in a file is full at its configured size, and its loop device is removed with the mount.
func TestLoopVolume(t *testing.T) {
	v := topology.Volume{Kind: topology.LoopVolume, Size: 32 << 20}
	needVolume(t, v)
	var backing string
	t.Run("mounted", func(t *testing.T) {
		var dir string
		dir, backing = mountedVolume(t, v)
		if err := os.WriteFile(filepath.Join(dir, "x"), make([]byte, 64<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("writing more than its capacity: %v", err)
		}
	})
	// The kernel releases a device asynchronously.
	for deadline := time.Now().Add(time.Minute); holdsLoop(t, backing); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a loop device still has the file")
		}
	}
}

// holdsLoop reports whether a loop device has a file below dir.
func holdsLoop(t *testing.T, dir string) bool {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name, err := os.ReadFile(f); err == nil && bytes.HasPrefix(name, []byte(dir)) {
			return true
		}
	}
	return false
}

func TestNoVolume(t *testing.T) {
	if err := mountVolume(topology.Volume{Kind: topology.NoVolume}, "/nonexistent", "/nonexistent"); err != nil {
		t.Error(err)
	}
}

func TestPathsWithSeparators(t *testing.T) {
	testkit.Need(t, testkit.Root)
	base := t.TempDir()
	dir := filepath.Join(base, "node")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := mountVolume(topology.Volume{Kind: topology.OverlayVolume}, dir, filepath.Join(base, "a:b,c"))
	if err != nil {
		if strings.Contains(err.Error(), "no overlayfs") && errors.Is(err, unix.EINVAL) {
			testkit.Lacks(t, testkit.OverlayVolumes, err)
		}
		t.Fatal(err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Error(err)
	}
}
