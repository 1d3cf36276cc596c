// Package sample reads, once a second, what nodes, links, the emulator and the whole
// machine are using while a trial runs.
package sample

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skerry/internal/machine/files"
)

// clockTick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux
// architecture Go runs on.
const clockTick = 10 * time.Millisecond

// Machine is what the whole machine has used since it booted.
type Machine struct {
	Busy   time.Duration // over all cores: user, nice, system, irq, softirq
	User   time.Duration // user and nice
	System time.Duration // system, irq and softirq
	Steal  time.Duration // taken by the hypervisor for others
	// Processes is of Busy what is counted for processes: without interrupts, which serve the
	// packets of all.
	Processes time.Duration
	// Cores are the processors that are online.
	Cores int
}

// ReadMachine reads a machine's /proc/stat.
func ReadMachine(ctx context.Context, on files.System) (Machine, error) {
	text, err := files.Read(ctx, on, "/proc/stat")
	if err != nil {
		return Machine{}, fmt.Errorf("read CPU times of the machine: %w", err)
	}
	return parseMachine(text)
}

func parseMachine(stat string) (Machine, error) {
	sc := bufio.NewScanner(strings.NewReader(stat))
	var m *Machine
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if m != nil && len(f) > 0 && strings.HasPrefix(f[0], "cpu") {
			m.Cores++
		}
		if len(f) < 9 || f[0] != "cpu" {
			continue
		}
		// user nice system idle iowait irq softirq steal
		var ticks [8]int64
		for i := range ticks {
			n, err := strconv.ParseInt(f[i+1], 10, 64)
			if err != nil {
				return Machine{}, fmt.Errorf("read CPU times in %q: %w", sc.Text(), err)
			}
			ticks[i] = n
		}
		user, system := ticks[0]+ticks[1], ticks[2]+ticks[5]+ticks[6]
		m = &Machine{
			Busy: time.Duration(user+system) * clockTick, User: time.Duration(user) * clockTick, System: time.Duration(system) * clockTick,
			Steal: time.Duration(ticks[7]) * clockTick, Processes: time.Duration(user+ticks[2]) * clockTick,
		}
	}
	if m != nil {
		return *m, nil
	}
	return Machine{}, fmt.Errorf("read CPU times of the machine: /proc/stat has no line for all CPUs")
}

// ProcessCPU is the CPU time a process of a machine has used, all its threads together.
func ProcessCPU(ctx context.Context, on files.System, pid int) (time.Duration, error) {
	text, err := files.Read(ctx, on, fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	return parseProcessCPU(text)
}

func parseProcessCPU(stat string) (time.Duration, error) {
	// The second field is the program's name in brackets and may hold anything.
	_, rest, ok := cutLast(stat, ") ")
	f := strings.Fields(rest)
	if !ok || len(f) < 13 {
		return 0, fmt.Errorf("read CPU time of a process: unexpected %q", stat)
	}
	var total time.Duration
	for _, s := range f[11:13] { // utime, stime: fields 14 and 15
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of a process: %w", err)
		}
		total += time.Duration(n) * clockTick
	}
	return total, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
