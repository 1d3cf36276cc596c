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

// DiskLimit bounds what a group reads from and writes to a disk; 0 is no bound. Version 1
// does not hold back what is written through the page cache: only what is written directly
// or synchronously, as databases' logs are.
type DiskLimit struct {
	ReadBytes, WriteBytes int64 // a second
	ReadOps, WriteOps     int64 // a second
}

// Stricter is what holds where both limits do.
func (l DiskLimit) Stricter(m DiskLimit) DiskLimit {
	least := func(a, b int64) int64 {
		if a == 0 || b > 0 && b < a {
			return b
		}
		return a
	}
	return DiskLimit{least(l.ReadBytes, m.ReadBytes), least(l.WriteBytes, m.WriteBytes), least(l.ReadOps, m.ReadOps), least(l.WriteOps, m.WriteOps)}
}

// LimitDisk bounds what the group does on a disk ("254:0"), in place of an earlier bound.
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
		line := fmt.Sprintf("%s %d", device, x.value) // 0 takes the bound away
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

// CanLimitDisk tells whether the group, which exists, can bound disks.
func (g *Group) CanLimitDisk() bool {
	path, version := g.controllerFile(blkio, "blkio.throttle.read_bps_device", "io.max")
	_, err := os.Stat(path)
	return version != 0 && err == nil
}

// CheckDiskLimit is nil when what groups do on the disk of a directory, or of the nearest one
// above it that exists, can be bounded here; else it says why not: ErrNone, ErrNoController,
// or that nobody lets this process. It tries with a group of its own.
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

// FindDisk is the disk that a directory is on, as LimitDisk wants it; ErrNoController for one
// that is on none: in memory, or on a file system of layers.
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
	// Limits are for whole disks: a partition's directory is in that of its disk.
	if _, err := os.Stat(filepath.Join(entry, "partition")); err == nil {
		whole, err := os.ReadFile(filepath.Join(filepath.Dir(entry), "dev"))
		if err != nil {
			return "", fmt.Errorf("find the disk of %s: %w", dir, err)
		}
		device = strings.TrimSpace(string(whole))
	}
	return device, nil
}
