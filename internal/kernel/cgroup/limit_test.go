package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/test/testkit"
)

func TestStricter(t *testing.T) {
	a := DiskLimit{ReadBytes: 10, WriteBytes: 20, ReadOps: 30}
	b := DiskLimit{ReadBytes: 5, WriteBytes: 40, WriteOps: 7}
	want := DiskLimit{ReadBytes: 5, WriteBytes: 20, ReadOps: 30, WriteOps: 7}
	if got := a.Stricter(b); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := b.Stricter(a); got != want {
		t.Errorf("reverse order: %+v, want %+v", got, want)
	}
}

// The limit applies to the disk of a directory, and is removed again.
func TestLimitDisk(t *testing.T) {
	testkit.Need(t, testkit.Root)
	tree, err := Open()
	if err != nil {
		testkit.Lacks(t, testkit.DiskCgroups, err)
	}
	device, err := FindDisk("/")
	if errors.Is(err, ErrNoController) {
		testkit.Lacks(t, testkit.DiskCgroups, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	g := tree.Group(fmt.Sprintf("disk-test-%d", os.Getpid()))
	if err := g.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	limit := func(l DiskLimit) string {
		if err := g.LimitDisk(device, l); errors.Is(err, ErrNoController) || errors.Is(err, fs.ErrNotExist) {
			testkit.Lacks(t, testkit.DiskCgroups, err)
		} else if err != nil {
			t.Fatal(err)
		}
		path, version := g.controllerFile(blkio, "blkio.throttle.write_bps_device", "io.max")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if version == 2 {
			for _, word := range strings.Fields(string(text)) {
				if bps, ok := strings.CutPrefix(word, "wbps="); ok && bps != "max" {
					return bps
				}
			}
			return ""
		}
		return strings.TrimSpace(strings.TrimPrefix(string(text), device))
	}
	got := []string{limit(DiskLimit{WriteBytes: 1 << 20}), limit(DiskLimit{WriteBytes: 2 << 20}), limit(DiskLimit{})}
	if diff := cmp.Diff([]string{"1048576", "2097152", ""}, got); diff != "" {
		t.Error(diff)
	}
}

// The answer about a directory agrees with a group on its disk.
func TestCheckDiskLimit(t *testing.T) {
	testkit.Need(t, testkit.Root)
	dir := t.TempDir()
	_, onDisk := FindDisk(dir)
	err := CheckDiskLimit(filepath.Join(dir, "not", "made", "yet"))
	if onDisk != nil && !errors.Is(err, ErrNoController) {
		t.Errorf("a directory that is not on a disk: %v", err)
	}
	if err != nil && !errors.Is(err, ErrNoController) && !errors.Is(err, ErrNone) && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("untyped: %v", err)
	}
	if err := CheckDiskLimit("/proc/self"); !errors.Is(err, ErrNoController) {
		t.Errorf("/proc: %v, want ErrNoController", err)
	}
}

func TestFindDiskWithoutDisk(t *testing.T) {
	if _, err := FindDisk(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
	if _, err := FindDisk("/proc"); !errors.Is(err, ErrNoController) {
		t.Errorf("/proc is reported to be on a disk: %v", err)
	}
}
