package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// period of the CPU quota. With the kernel's default of 100 ms, a node with half a core would stop
	// for 50 ms at a time, which its clients would measure.
	period = 10 * time.Millisecond
	// leastQuota is the kernel's minimum.
	leastQuota = time.Millisecond
)

// LimitCPU limits the group to a number of cores in every period.
func (g *Group) LimitCPU(cores float64) error {
	p := max(period, time.Duration(float64(leastQuota)/cores))
	// Rounding must not go below the kernel's minimum.
	quota := strconv.FormatInt(max(leastQuota, time.Duration(cores*float64(p))).Microseconds(), 10)
	every := strconv.FormatInt(p.Microseconds(), 10)
	path, version := g.controllerFile(cpu, "cpu.cfs_quota_us", "cpu.max")
	var err error
	switch version {
	case 1:
		if err = writeFile(filepath.Join(filepath.Dir(path), "cpu.cfs_period_us"), every); err == nil {
			err = writeFile(path, quota)
		}
	case 2:
		err = writeFile(path, quota+" "+every)
	default:
		err = ErrNoController
	}
	return limitError("CPU", err)
}

// SetCPUWeight multiplies the group's share of processor time by times, 1 to 100, while processors are
// contended. Every group starts with 1.
func (g *Group) SetCPUWeight(times int) error {
	path, version := g.controllerFile(cpu, "cpu.shares", "cpu.weight")
	var err error
	switch version {
	case 1:
		err = writeFile(path, strconv.Itoa(1024*times))
	case 2:
		err = writeFile(path, strconv.Itoa(100*times))
	default:
		err = ErrNoController
	}
	return limitError("CPU weight", err)
}

// LimitMemory bounds the memory of the group in bytes, page cache included, and disables swap for it.
func (g *Group) LimitMemory(bytes int64) error {
	value := strconv.FormatInt(bytes, 10)
	path, version := g.controllerFile(memory, "memory.limit_in_bytes", "memory.max")
	var swap, noSwap string
	switch version {
	case 1: // counts memory and swap together
		swap, noSwap = "memory.memsw.limit_in_bytes", value
	case 2:
		swap, noSwap = "memory.swap.max", "0"
	default:
		return limitError("memory", ErrNoController)
	}
	if err := writeFile(path, value); err != nil {
		return limitError("memory", err)
	}
	// The file is missing if swap is not accounted.
	if err := writeFile(filepath.Join(filepath.Dir(path), swap), noSwap); err != nil && !isMissing(err) {
		return limitError("swap", err)
	}
	return nil
}

// isMissing reports a missing controller file. Creating files in a control group fails with EPERM or EACCES,
// but files are opened here without creation.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTSUP) }

func limitError(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrNoController, err)
	}
	return fmt.Errorf("limit %s: %w", what, err)
}

// SupportedLimits reports which limits the existing group supports.
func (g *Group) SupportedLimits() (cpuLimit, memoryLimit bool) {
	has := func(path string, version int) bool {
		_, err := os.Stat(path)
		return version != 0 && err == nil
	}
	return has(g.controllerFile(cpu, "cpu.cfs_quota_us", "cpu.max")), has(g.controllerFile(memory, "memory.limit_in_bytes", "memory.max"))
}

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
	return DiskLimit{
		ReadBytes: least(l.ReadBytes, m.ReadBytes), WriteBytes: least(l.WriteBytes, m.WriteBytes),
		ReadOps: least(l.ReadOps, m.ReadOps), WriteOps: least(l.WriteOps, m.WriteOps),
	}
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
		return "", fmt.Errorf("%w for %s: not on a disk (device %s)", ErrNoController, dir, device)
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
