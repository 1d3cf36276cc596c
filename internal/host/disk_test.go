package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/cgroup"
)

func TestDiskThatIsFull(t *testing.T) {
	n := newNode(t, nil)
	if err := n.FillDisk(); err == nil {
		t.Error("the machine's disk can be filled")
	}
	if err := n.MountDisk(8 << 20); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(n.Dir(), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	write := func(name string, bytes int) error {
		return os.WriteFile(filepath.Join(n.Dir(), name), make([]byte, bytes), 0o644)
	}
	if err := write("before", 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := n.FillDisk(); err != nil {
		t.Fatal(err)
	}
	if err := write("full", 1<<20); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing to a full disk: %v, want ENOSPC", err)
	}
	if got := output(t, n, Command{}, "echo x > in 2>/dev/null && echo written || echo refused"); got != "refused" {
		t.Errorf("a process of the node: %s, want refused", got)
	}
	if err := n.FreeDisk(); err != nil {
		t.Fatal(err)
	}
	if err := write("after", 4<<20); err != nil {
		t.Errorf("writing after it was freed: %v", err)
	}
	if err := write("more", 8<<20); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing more than it has: %v, want ENOSPC", err)
	}
}

func TestFillAnEmptyDisk(t *testing.T) {
	n := newNode(t, nil)
	if err := n.MountDisk(8 << 20); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(n.Dir(), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := n.FillDisk(); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(n.Dir(), "x"), make([]byte, 64<<10), 0o644)
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing to it: %v, want ENOSPC", err)
	}
}

func TestLimitDisk(t *testing.T) {
	n := newNode(t, nil)
	err := n.LimitDisk(cgroup.DiskLimit{WriteBytes: 1 << 20, ReadOps: 100})
	if errors.Is(err, cgroup.ErrNoController) || errors.Is(err, ErrNoGroup) {
		t.Skip(err) // the directory of tests is on no disk, or nobody can bound it
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := n.LimitDisk(cgroup.DiskLimit{}); err != nil {
		t.Errorf("without a bound again: %v", err)
	}
}
