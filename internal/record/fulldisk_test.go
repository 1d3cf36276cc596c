package record

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/test/testkit"
)

// smallDisk mounts a file system of size bytes that only the calling thread sees, in a mount namespace that ends with
// it.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	testkit.Need(t, testkit.Root)
	runtime.LockOSThread() // for good: the thread cannot go back to where it was
	noError(t, unix.Unshare(unix.CLONE_NEWNS))
	noError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	dir := t.TempDir()
	noError(t, unix.Mount("skerry-test", dir, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	noError(t, err)
	defer f.Close()
	if _, err := io.Copy(f, neverEnding{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }

func TestFullDiskKeepsFinishedTrials(t *testing.T) {
	disk := smallDisk(t, "512k")
	w, err := Create(disk, testRun(2))
	noError(t, err)
	finish(t, w, 1, Trial{State: TrialOK, Goodput: 5})
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)

	tw, err := w.OpenTrial(2)
	if err == nil {
		for range 100 {
			err = errors.Join(err, tw.Second(Second{OK: 1}))
		}
		err = errors.Join(err, tw.Finish(Trial{State: TrialOK}))
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(advice.Of(err), "--resume") {
		t.Fatalf("got %v with advice %q", err, advice.Of(err))
	}
	noError(t, tw.Abandon())
	noError(t, w.Close())
	d := open(t, w.Dir())
	if len(d.Summary.Trials) != 1 || d.Summary.Trials[0].Goodput != 5 || len(d.Notes) > 0 {
		t.Errorf("trials %+v, notes %v; want only the complete finished trial", d.Summary.Trials, d.Notes)
	}

	noError(t, os.Remove(ballast))
	r, err := Resume(w.Dir(), false)
	noError(t, err)
	finish(t, r, 2, Trial{State: TrialOK})
	noError(t, r.Finish())
	if !open(t, w.Dir()).Summary.Complete {
		t.Error("the resumed run is not complete")
	}
}

func TestCreateOnFullDisk(t *testing.T) {
	disk := smallDisk(t, "64k")
	fill(t, filepath.Join(disk, "ballast"))
	if _, err := Create(disk, testRun(1)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want ENOSPC", err)
	}
	if left, _ := filepath.Glob(filepath.Join(disk, "*quick*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
