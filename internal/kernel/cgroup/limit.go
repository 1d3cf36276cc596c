package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// period of the CPU quota. The kernel's default is 100 ms: a node with half a core
	// would then stand still for 50 ms at a time, which its clients would measure.
	period = 10 * time.Millisecond
	// leastQuota is the smallest that the kernel takes.
	leastQuota = time.Millisecond
)

// LimitCPU gives the group at most cores of CPU time in every period.
func (g *Group) LimitCPU(cores float64) error {
	p := max(period, time.Duration(float64(leastQuota)/cores))
	// Rounding must not make it less than the kernel takes.
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

// SetCPUWeight gives the group's processes as many times the processor time of another group's,
// and an earlier turn, while there is too little for all: 1 to 100, 1 being what every group has.
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

// LimitMemory bounds the memory of the group in bytes, page cache included; it is not
// given swap space in place of memory.
func (g *Group) LimitMemory(bytes int64) error {
	value := strconv.FormatInt(bytes, 10)
	path, version := g.controllerFile(memory, "memory.limit_in_bytes", "memory.max")
	var swap, noSwap string
	switch version {
	case 1: // this file counts memory and swap together
		swap, noSwap = "memory.memsw.limit_in_bytes", value
	case 2:
		swap, noSwap = "memory.swap.max", "0"
	default:
		return limitError("memory", ErrNoController)
	}
	if err := writeFile(path, value); err != nil {
		return limitError("memory", err)
	}
	// The file is missing where swap is not accounted for.
	if err := writeFile(filepath.Join(filepath.Dir(path), swap), noSwap); err != nil && !isMissing(err) {
		return limitError("swap", err)
	}
	return nil
}

// isMissing tells that a controller's file is not there. Control groups refuse to make
// files with EPERM or EACCES, but files are opened here without being made.
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

// SupportedLimits tells which limits the group, which exists, can give.
func (g *Group) SupportedLimits() (cpuLimit, memoryLimit bool) {
	has := func(path string, version int) bool {
		_, err := os.Stat(path)
		return version != 0 && err == nil
	}
	return has(g.controllerFile(cpu, "cpu.cfs_quota_us", "cpu.max")), has(g.controllerFile(memory, "memory.limit_in_bytes", "memory.max"))
}
