package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/cgroup"
	"skerry/test/testkit"
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
		t.Errorf("writing after the space was freed: %v", err)
	}
	if err := write("more", 8<<20); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing more than its capacity: %v, want ENOSPC", err)
	}
}

func TestFillDisk(t *testing.T) {
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
		t.Errorf("writing to the full disk: %v, want ENOSPC", err)
	}
}

// limitDisk limits the disk of a node, or skips the test if that is impossible: the directory of tests is on no disk,
// or the control group is missing.
func limitDisk(t *testing.T, n *Node, l cgroup.DiskLimit) {
	t.Helper()
	err := n.LimitDisk(l)
	if errors.Is(err, cgroup.ErrNoController) || errors.Is(err, ErrNoGroup) {
		testkit.Lacks(t, testkit.DiskCgroups, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The limits of a node apply from its first process on.
func TestFlavorLimitsDisk(t *testing.T) {
	limitDisk(t, newNode(t, nil), cgroup.DiskLimit{WriteBytes: 1 << 20}) // or skips the test
	n := newNode(t, func(s *Spec) { s.Disk = cgroup.DiskLimit{WriteBytes: 4 << 20} })
	began := time.Now()
	got := output(t, n, Command{}, "dd if=/dev/zero of=f bs=64k count=64 oflag=dsync 2>&1; echo $?")
	if took := time.Since(began); strings.HasSuffix(got, "\n0") && took < time.Second/2 {
		t.Errorf("4 MiB at 4 MiB/s took %v", took)
	}
}

// If the kernel supports limits, direct writes and synced writes through the page cache take as long as the limits
// require, less the burst that the kernel allows.
func TestLimitDisk(t *testing.T) {
	const (
		bytes = 4 << 20 // per second
		ops   = 100     // per second
	)
	tests := map[string]struct {
		limit  cgroup.DiskLimit
		script string
		least  time.Duration
	}{
		"direct":        {cgroup.DiskLimit{WriteBytes: bytes}, "dd if=/dev/zero of=f bs=64k count=64 oflag=direct", time.Second / 2},
		"synced":        {cgroup.DiskLimit{WriteBytes: bytes}, "dd if=/dev/zero of=f bs=64k count=64 oflag=dsync", time.Second / 2},
		"often":         {cgroup.DiskLimit{WriteOps: ops}, "dd if=/dev/zero of=f bs=4k count=100 oflag=direct", time.Second / 2},
		"read":          {cgroup.DiskLimit{ReadBytes: bytes}, "dd if=/dev/zero of=f bs=64k count=64 oflag=direct && dd if=f of=/dev/null bs=64k iflag=direct", time.Second / 2},
		"after removal": {cgroup.DiskLimit{}, "dd if=/dev/zero of=f bs=64k count=64 oflag=direct", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, nil)
			limitDisk(t, n, cgroup.DiskLimit{WriteBytes: 1}) // replaced by what follows
			limitDisk(t, n, tt.limit)
			began := time.Now()
			got := output(t, n, Command{}, "("+tt.script+") 2>&1; echo $?")
			took := time.Since(began)
			if strings.Contains(got, "Invalid argument") {
				testkit.Lacks(t, testkit.DirectIO, errors.New(got))
			}
			if !strings.HasSuffix(got, "\n0") {
				t.Fatalf("output of dd: %s", got)
			}
			t.Logf("writing took %v", took)
			if took < tt.least {
				t.Errorf("writing took %v, want at least %v", took, tt.least)
			}
		})
	}
}
