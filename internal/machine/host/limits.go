package host

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/cgroup"
)

// ErrNoGroup is returned for an operation that needs a control group if the node has none.
var ErrNoGroup = errors.New("no control group")

// ErrWhole is returned for an operation that would affect a whole machine.
var ErrWhole = errors.New("the node is a whole machine")

// LimitDisk limits the node's throughput on the disk of its directory. It replaces an earlier limit; the limits of the
// node's specification still apply.
func (n *Node) LimitDisk(l cgroup.DiskLimit) error {
	l = l.Stricter(n.spec.Disk)
	g, err := n.controlGroup()
	if err == nil && g == nil {
		err = ErrNoGroup
	}
	if err != nil {
		return fmt.Errorf("limit disk of %s: %w", n.spec.Name, err)
	}
	device, err := cgroup.FindDisk(n.spec.Dir)
	if err == nil {
		err = g.LimitDisk(device, l)
	}
	if err != nil {
		return fmt.Errorf("limit disk of %s: %w", n.spec.Name, err)
	}
	return nil
}

// MountDisk mounts a file system of the given size in memory on the node's empty directory. It can be full without
// affecting the machine's disk. The process that removes the lab's directories unmounts it.
func (n *Node) MountDisk(bytes int64) error {
	if n.spec.Whole {
		return fmt.Errorf("mount a disk for %s: %w", n.spec.Name, ErrWhole)
	}
	err := unix.Mount("skerry", n.spec.Dir, "tmpfs", unix.MS_NODEV, fmt.Sprintf("mode=0755,size=%d", bytes))
	if err != nil {
		return fmt.Errorf("mount a disk for %s: %w", n.spec.Name, err)
	}
	n.disk = bytes
	return nil
}

// fillTries bounds the attempts to shrink a disk while processes write to it.
const fillTries = 100

// FillDisk shrinks MountDisk's disk to its content, so that no space is left.
func (n *Node) FillDisk() error {
	if n.disk == 0 {
		return fmt.Errorf("fill the disk of %s: %w", n.spec.Name, os.ErrInvalid)
	}
	var err error
	for range fillTries {
		var st unix.Statfs_t
		if err = unix.Statfs(n.spec.Dir, &st); err != nil {
			break
		}
		used := max(int64(st.Blocks-st.Bfree), 1) * st.Bsize // 0 would be no bound
		if err = n.resizeDisk(used); !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("fill the disk of %s: %w", n.spec.Name, err)
	}
	return nil
}

// FreeDisk restores the size of MountDisk's disk.
func (n *Node) FreeDisk() error {
	if err := n.resizeDisk(n.disk); err != nil {
		return fmt.Errorf("free the disk of %s: %w", n.spec.Name, err)
	}
	return nil
}

func (n *Node) resizeDisk(bytes int64) error {
	return unix.Mount("", n.spec.Dir, "", unix.MS_REMOUNT|unix.MS_NODEV, fmt.Sprintf("size=%d", bytes))
}

// LimitCPU changes the CPU quota of the node, in cores.
func (n *Node) LimitCPU(cores float64) error {
	g, err := n.controlGroup()
	if err == nil && g == nil {
		err = ErrNoGroup
	}
	if err == nil {
		err = g.LimitCPU(cores)
	}
	if err != nil {
		return fmt.Errorf("limit CPU of %s: %w", n.spec.Name, err)
	}
	return nil
}

// Used returns the processor time that the node used and that its quota withheld.
func (n *Node) Used() (used, throttled time.Duration, err error) {
	u, err := n.groupUsage()
	return u.CPU, u.Throttled, err
}
