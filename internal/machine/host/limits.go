package host

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/cgroup"
)

// ErrNoGroup is returned by what needs a control group where the node has none.
var ErrNoGroup = errors.New("no control group")

// ErrWhole is returned by what would be done to the machine where the node is that.
var ErrWhole = errors.New("the node is a whole machine")

// LimitDisk bounds what the node's processes do on the disk that its directory is on, in place
// of an earlier bound; what the node is made of bounds it too.
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

// MountDisk puts the node's directory, which is empty, on a disk of its own: one of so many
// bytes in memory, since that can be full without harm to the machine's. The process that removes the
// lab's directories unmounts it.
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

// fillTries is how often a disk is made as small as what is on it, while others write to it.
const fillTries = 100

// FillDisk leaves no space on the disk of MountDisk: it shrinks to what is on it.
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

// FreeDisk gives the disk of MountDisk its size back.
func (n *Node) FreeDisk() error {
	if err := n.resizeDisk(n.disk); err != nil {
		return fmt.Errorf("free the disk of %s: %w", n.spec.Name, err)
	}
	return nil
}

func (n *Node) resizeDisk(bytes int64) error {
	return unix.Mount("", n.spec.Dir, "", unix.MS_REMOUNT|unix.MS_NODEV, fmt.Sprintf("size=%d", bytes))
}

// LimitCPU changes the quota of the node's processes to so many cores.
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

// Used is the processor time that the node used and that its quota held back.
func (n *Node) Used() (used, throttled time.Duration, err error) {
	u, err := n.groupUsage()
	return u.CPU, u.Throttled, err
}
