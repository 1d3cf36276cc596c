// Package procfs reads process and machine statistics from /proc.
package procfs

import (
	"bytes"
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

// Process identifies a process until the machine reboots: process IDs are reused, but not with the same
// start time.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
}

// ErrGone means that a process has ended.
var ErrGone = errors.New("no such process")

// FindProcess returns the present process with an ID.
func FindProcess(pid int) (Process, error) {
	s, err := ReadStat(pid)
	return Process{PID: pid, Start: s.Start}, err
}

// Self returns the calling process.
func Self() (Process, error) { return FindProcess(os.Getpid()) }

// Alive reports whether p runs. A zombie does not run.
func (p Process) Alive() bool {
	s, err := ReadStat(p.PID)
	return err == nil && s.Start == p.Start && s.running()
}

// Kill sends SIGKILL to p, but not to a process that reuses its ID.
func (p Process) Kill() error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	defer unix.Close(fd)
	if !p.Alive() { // the pidfd refers to p or to a later process
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	return nil
}

// Stat is a part of /proc/PID/stat.
type Stat struct {
	Name  string
	State byte
	// Threads is the number of running threads, plus the first one until the process is waited for.
	Threads int
	// CPU is the user and system time of the process and of its waited-for children.
	CPU   time.Duration
	Start uint64 // clock ticks after boot
	// Resident memory in bytes.
	Resident int64
}

// running reports whether any thread runs. State describes the first thread, which may end before others.
func (s Stat) running() bool { return s.State != 'X' && (s.State != 'Z' || s.Threads > 1) }

// tick is the unit of times in /proc: USER_HZ is 100 on every architecture that Go supports.
const tick = 10 * time.Millisecond

func ReadStat(pid int) (Stat, error) {
	data, err := os.ReadFile(procPath(pid, "stat"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return Stat{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	if err != nil {
		return Stat{}, err
	}
	return parseStat(data)
}

func parseStat(data []byte) (Stat, error) {
	// The name may contain spaces and brackets.
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return Stat{}, fmt.Errorf("parse process status %q: no name", data)
	}
	s := Stat{Name: string(data[open+1 : end])}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 22 {
		return Stat{}, fmt.Errorf("parse process status %q: %d fields", data, len(fields))
	}
	s.State = fields[0][0]
	var ticks, threads, pages uint64
	for i, to := range map[int]*uint64{17: &threads, 19: &s.Start, 21: &pages} {
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return Stat{}, fmt.Errorf("parse process status: %w", err)
		}
		*to = n
	}
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return Stat{}, fmt.Errorf("parse process status: %w", err)
		}
		ticks += n
	}
	s.CPU = time.Duration(ticks) * tick
	s.Threads = int(threads)
	s.Resident = int64(pages) * int64(os.Getpagesize())
	return s, nil
}

// ReadIO returns the bytes that a process read from and wrote to disks.
func ReadIO(pid int) (read, wrote int64, err error) {
	data, err := os.ReadFile(procPath(pid, "io"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseInt(value, 10, 64) // other values are not used
		switch key {
		case "read_bytes":
			read = n
		case "write_bytes":
			wrote = n
		}
	}
	return read, wrote, nil
}

// ListChildren returns the running children of a process.
func ListChildren(pid int) []int {
	lists, _ := filepath.Glob(procPath(pid, "task/*/children")) // the pattern is valid
	var all []int
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, f := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(f); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// ReadEnv returns a variable of a process's initial environment, "" if it is unset or unreadable.
func ReadEnv(pid int, name string) string {
	data, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

func ListPIDs() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// AvailableMemory returns the memory that programs can allocate without evicting others, in bytes.
func AvailableMemory() (int64, error) { return availableMemory("/proc/meminfo") }

func availableMemory(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the available memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("read the available memory: no MemAvailable in %s", path)
}

// FindProcesses returns the processes for which test holds. Each is identified before the test: if its ID is reused
// meanwhile, the result refers to a process that has ended.
func FindProcesses(test func(pid int) bool) ([]Process, error) {
	all, err := ListPIDs()
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, pid := range all {
		if p, err := FindProcess(pid); err == nil && test(pid) {
			found = append(found, p)
		}
	}
	return found, nil
}

// BootID identifies the present boot of the machine.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("identify the machine's boot: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

func procPath(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }
