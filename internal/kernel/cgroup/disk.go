package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DiskLimit bounds reads and writes of a group on a disk; 0 means no bound. Version 1 limits only direct and
// synchronous writes, for example of database logs, but not writes through the page cache.
type DiskLimit struct {
	ReadBytes, WriteBytes int64 // per second
	ReadOps, WriteOps     int64 // per second
}

// Stricter returns the limit that holds if both limits apply.
func (l DiskLimit) Stricter(m DiskLimit) DiskLimit {
	least := func(a, b int64) int64 {
		if a == 0 || b > 0 && b < a {
			return b
		}
		return a
	}
	return DiskLimit{least(l.ReadBytes, m.ReadBytes), least(l.WriteBytes, m.WriteBytes), least(l.ReadOps, m.ReadOps), least(l.WriteOps, m.WriteOps)}
}

// LimitDisk replaces the limits of the group on a disk such as "254:0".
func (g *Group) LimitDisk(device string, l DiskLimit) error {
	for _, x := range []struct {
		v1, v2 string
		value  int64
	}{
		{"blkio.throttle.read_bps_device", "rbps", l.ReadBytes},
		{"blkio.throttle.write_bps_device", "wbps", l.WriteBytes},
		{"blkio.throttle.read_iops_device", "riops", l.ReadOps},
		{"blkio.throttle.write_iops_device", "wiops", l.WriteOps},
	} {
		path, version := g.controllerFile(blkio, x.v1, "io.max")
		line := fmt.Sprintf("%s %d", device, x.value) // 0 removes the bound
		switch {
		case version == 0:
			return limitError("disk", ErrNoController)
		case version == 2 && x.value == 0:
			line = fmt.Sprintf("%s %s=max", device, x.v2)
		case version == 2:
			line = fmt.Sprintf("%s %s=%d", device, x.v2, x.value)
		}
		if err := writeFile(path, line); err != nil {
			return limitError("disk", err)
		}
	}
	return nil
}

// CanLimitDisk reports whether the existing group can limit disks.
func (g *Group) CanLimitDisk() bool {
	path, version := g.controllerFile(blkio, "blkio.throttle.read_bps_device", "io.max")
	_, err := os.Stat(path)
	return version != 0 && err == nil
}

// CheckDiskLimit returns nil if groups can limit the disk of a directory, or of its nearest existing parent.
// Otherwise it returns ErrNone, ErrNoController or a permission error. It tests this with a temporary group.
func CheckDiskLimit(dir string) (err error) {
	for dir != "/" && dir != "." {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	device, err := FindDisk(dir)
	if err != nil {
		return err
	}
	tree, err := Open()
	if err != nil {
		return err
	}
	g := tree.Group(fmt.Sprint("disk-", os.Getpid()))
	if err := g.Create(); err != nil {
		return err
	}
	return errors.Join(g.LimitDisk(device, DiskLimit{WriteBytes: 1 << 20}), g.Remove())
}

// FindDisk returns the disk of a directory in the form that LimitDisk expects. It returns ErrNoController for a
// file system in memory or of layers.
func FindDisk(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	device := strconv.FormatUint(uint64(unix.Major(st.Dev)), 10) + ":" + strconv.FormatUint(uint64(unix.Minor(st.Dev)), 10)
	entry, err := filepath.EvalSymlinks("/sys/dev/block/" + device)
	if err != nil {
		return "", fmt.Errorf("%w for %s: it is not on a disk of its own (device %s)", ErrNoController, dir, device)
	}
	// Limits apply to whole disks. The directory of a partition is inside that of its disk.
	if _, err := os.Stat(filepath.Join(entry, "partition")); err == nil {
		whole, err := os.ReadFile(filepath.Join(filepath.Dir(entry), "dev"))
		if err != nil {
			return "", fmt.Errorf("find the disk of %s: %w", dir, err)
		}
		device = strings.TrimSpace(string(whole))
	}
	return device, nil
}
