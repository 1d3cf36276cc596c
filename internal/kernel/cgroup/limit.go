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
