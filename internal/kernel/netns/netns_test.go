package netns

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/test/testkit"
)

func make1(t *testing.T) string {
	t.Helper()
	testkit.Need(t, testkit.Root)
	path := filepath.Join(t.TempDir(), "ns")
	if err := OnNewThread(func() error { return Create(path) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return path
}

func TestDoRestoresNamespace(t *testing.T) {
	path := make1(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := ID(currentPath)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ID(path)
	if err != nil {
		t.Fatal(err)
	}
	mine := errors.New("what f returned")
	var there uint64
	err = Do(path, func() error {
		there, err = ID(currentPath)
		return errors.Join(err, mine)
	})
	if !errors.Is(err, mine) || there != want || there == home {
		t.Errorf("Do: %v, in namespace %d; want %d", err, there, want)
	}
	if back, err := ID(currentPath); err != nil || back != home {
		t.Errorf("after Do in namespace %d, %v; want %d", back, err, home)
	}
}

func TestDoOfNoNamespace(t *testing.T) {
	ran := false
	err := Do(filepath.Join(t.TempDir(), "none"), func() error { ran = true; return nil })
	if !errors.Is(err, os.ErrNotExist) || ran {
		t.Errorf("error %v, ran %v", err, ran)
	}
}

func TestCreateRefusesExistingPath(t *testing.T) {
	path := make1(t)
	if err := OnNewThread(func() error { return Create(path) }); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v, want fs.ErrExist", err)
	}
}

// The first thread represents its process in /proc, and must not stay in another namespace.
func TestOnNewThreadKeepsProcessNamespace(t *testing.T) {
	testkit.Need(t, testkit.Root)
	before, err := ID("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := OnNewThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) }); err != nil {
			t.Fatal(err)
		}
		if after, err := ID("/proc/self/ns/net"); err != nil || after != before {
			t.Fatalf("the process moved from namespace %d to %d, %v", before, after, err)
		}
	}
}

// The main thread represents the process in /proc and never ends, so it is not used.
func TestOnNewThreadSparesMainThread(t *testing.T) {
	for range 200 {
		tid := 0
		if err := OnNewThread(func() error { tid = unix.Gettid(); return nil }); err != nil {
			t.Fatal(err)
		}
		if tid == os.Getpid() {
			t.Fatal("f ran on the main thread")
		}
	}
}
