package cgroup

import (
	"bufio"
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

// Usage is the consumption of a group since its creation, for each available controller.
type Usage struct {
	CPU         time.Duration
	User        time.Duration
	System      time.Duration
	HasCPU      bool
	Throttled   time.Duration
	Memory      int64 // resident, without page cache
	HasMemory   bool
	Read, Wrote int64 // bytes on block devices
	HasIO       bool
	// DiskWait is the time in which at least one thread waited for a disk. It requires version 2 and
	// pressure accounting.
	DiskWait    time.Duration
	HasDiskWait bool
}

// Usage reads the consumption of the group. It is zero for a missing group.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	err := errors.Join(g.readCPU(&u), g.readMemory(&u), g.readIO(&u), g.readPressure(&u))
	if err != nil {
		return u, fmt.Errorf("read usage of control group: %w", err)
	}
	return u, nil
}

func (g *Group) readCPU(u *Usage) error {
	if mount, ok := g.tree.v1[cpuacct]; ok {
		text, err := os.ReadFile(filepath.Join(mount, root, g.path, "cpuacct.usage"))
		if err == nil {
			var ns int64
			ns, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			u.CPU, u.HasCPU = time.Duration(ns), true
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := g.readCPUSplit(mount, u); err != nil {
			return err
		}
	}
	path, version := g.controllerFile(cpu, "cpu.stat", "cpu.stat")
	if version == 0 {
		return nil
	}
	return scanFields(path, func(f []string) {
		n, _ := strconv.ParseInt(f[1], 10, 64) // every field is a number
		switch f[0] {
		case "usage_usec":
			u.CPU, u.HasCPU = time.Duration(n)*time.Microsecond, true
		case "user_usec":
			u.User = time.Duration(n) * time.Microsecond
		case "system_usec":
			u.System = time.Duration(n) * time.Microsecond
		case "throttled_usec":
			u.Throttled = time.Duration(n) * time.Microsecond
		case "throttled_time":
			u.Throttled = time.Duration(n)
		}
	})
}

// readCPUSplit reads user and system time of version 1, which the kernel samples.
func (g *Group) readCPUSplit(mount string, u *Usage) error {
	for name, into := range map[string]*time.Duration{"cpuacct.usage_user": &u.User, "cpuacct.usage_sys": &u.System} {
		text, err := os.ReadFile(filepath.Join(mount, root, g.path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // Linux before 4.6, or no group yet
		}
		if err != nil {
			return err
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return err
		}
		*into = time.Duration(ns)
	}
	return nil
}

func (g *Group) readMemory(u *Usage) error {
	path, version := g.controllerFile(memory, "memory.stat", "memory.stat")
	if version == 0 {
		return nil
	}
	resident := map[int]string{1: "total_rss", 2: "anon"}[version]
	return scanFields(path, func(f []string) {
		if f[0] == resident {
			u.Memory, _ = strconv.ParseInt(f[1], 10, 64) // always a number
			u.HasMemory = true
		}
	})
}

// readIO parses "254:0 Read 4096" of version 1 and "254:0 rbytes=4096 wbytes=0 ..." of version 2.
func (g *Group) readIO(u *Usage) error {
	path, version := g.controllerFile(blkio, "blkio.throttle.io_service_bytes_recursive", "io.stat")
	if version == 0 {
		return nil
	}
	add := func(key, value string) {
		n, _ := strconv.ParseInt(value, 10, 64) // always a number
		switch key {
		case "Read", "rbytes":
			u.Read += n
		case "Write", "wbytes":
			u.Wrote += n
		}
	}
	if _, err := os.Stat(path); err == nil {
		u.HasIO = true
	}
	return scanFields(path, func(f []string) {
		if version == 1 && len(f) == 3 {
			add(f[1], f[2])
			return
		}
		for _, pair := range f[1:] {
			if key, value, ok := strings.Cut(pair, "="); ok {
				add(key, value)
			}
		}
	})
}

// readPressure parses "some avg10=0.00 avg60=0.00 avg300=0.00 total=63", in microseconds. Reading fails on a kernel
// started without pressure accounting.
func (g *Group) readPressure(u *Usage) error {
	if g.tree.v2 == "" {
		return nil
	}
	err := scanFields(filepath.Join(g.tree.v2, root, g.path, "io.pressure"), func(f []string) {
		if total, ok := strings.CutPrefix(f[len(f)-1], "total="); ok && f[0] == "some" {
			us, _ := strconv.ParseInt(total, 10, 64) // always a number
			u.DiskWait, u.HasDiskWait = time.Duration(us)*time.Microsecond, true
		}
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// scanFields calls f with the fields of each line that has at least two. A missing file has no lines.
func scanFields(path string, f func([]string)) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) >= 2 {
			f(words)
		}
	}
	return lines.Err()
}

// Join moves a process into the group in every hierarchy.
func (g *Group) Join(pid int) error {
	for _, dir := range g.existingDirs() {
		if err := writeFile(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("move process %d into control group: %w", pid, err)
		}
	}
	return nil
}

// Processes returns the process IDs in the group and its children.
func (g *Group) Processes() ([]int, error) {
	var all []int
	seen := map[int]bool{}
	for _, dir := range g.existingDirs() {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err != nil || e.Name() != "cgroup.procs" {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
				return err
			}
			for _, f := range strings.Fields(string(data)) {
				// A process of another PID namespace appears as 0.
				if pid, err := strconv.Atoi(f); err == nil && pid > 0 && !seen[pid] {
					seen[pid] = true
					all = append(all, pid)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list processes of control group: %w", err)
		}
	}
	return all, nil
}
