package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/kernel/realtime"
)

// Resources that suffice for a lab of eight nodes with a database.
const (
	wantProcessors = 2
	wantMemory     = 2 << 30
	wantDisk       = 2 << 30
	wantFiles      = 4096
	wantProcesses  = 2048
)

// controlGroups makes a control group and sets each limit of nodes.
func controlGroups() Finding {
	const name = "control groups"
	tree, err := cgroup.Open()
	if err != nil {
		f := failed(name, Limited, err)
		f.Detail += "; nodes have no limits and their use is not counted"
		f.Mend = "mount -t cgroup2 none /sys/fs/cgroup"
		return f
	}
	group := tree.Group(fmt.Sprint("doctor-", os.Getpid()))
	defer group.Remove() // what is left of it, skerry clears with its next lab
	if err := group.Create(); err != nil {
		return Finding{Name: name, State: Limited, Mend: "run skerry as root",
			Detail: "none can be made: nodes have no limits and their use is not counted"}
	}
	var works, lacks []string
	for _, limit := range []struct {
		what string
		try  error
	}{{"CPU", group.LimitCPU(1)}, {"memory", group.LimitMemory(64 << 20)}} {
		if limit.try == nil {
			works = append(works, limit.what)
		} else {
			lacks = append(lacks, limit.try.Error())
		}
	}
	f := Finding{Name: name, State: OK, Detail: "version " + versions() + "; limits on " + strings.Join(works, " and ") + " work"}
	if len(lacks) > 0 {
		f.State = Limited
		f.Detail = "version " + versions() + "; " + strings.Join(lacks, "; ")
		f.Mend = "boot with the controller on (cgroup_enable=memory swapaccount=1), or hand it down: echo +cpu +memory > /sys/fs/cgroup/cgroup.subtree_control"
	}
	return f
}

// diskLimits tries to limit a group's throughput on the disk of the nodes' directories.
func diskLimits(dir string) Finding {
	const name = "disk limits"
	err := cgroup.CheckDiskLimit(dir)
	if err == nil {
		return Finding{Name: name, State: OK, Detail: "what nodes write directly or synced, and read, can be bounded in " + dir}
	}
	f := failed(name, Limited, err)
	f.Detail += "; disks of flavors are not bounded, and disk_slow is unavailable"
	if f.Mend == "" {
		f.Mend = "set SKERRY_DATA to a folder on a disk, as root, with the controller blkio (version 1) or io (version 2)"
	}
	return f
}

// versions returns the mounted versions of control groups.
func versions() string {
	text, _ := os.ReadFile("/proc/self/mountinfo") // Open has read it
	one, two := strings.Contains(string(text), " - cgroup "), strings.Contains(string(text), " - cgroup2 ")
	switch {
	case one && two:
		return "1 and 2"
	case two:
		return "2"
	}
	return "1"
}

// realTime tries the link emulator's scheduling class on a thread.
func realTime() Finding {
	const name = "real-time priority"
	err := netns.OnNewThread(func() error { return realtime.SetThread(0, realtime.EmulatorPriority) })
	if err == nil {
		return Finding{Name: name, State: OK, Detail: "SCHED_RR is given"}
	}
	f := Finding{Name: name, State: Limited, Detail: fmt.Sprintf("SCHED_RR is refused (%v): links get late when the processors are busy", err)}
	if os.Geteuid() != 0 {
		f.Mend = "run skerry as root, or allow it: setcap cap_sys_nice+ep SKERRY"
		return f
	}
	f.Detail = fmt.Sprintf("SCHED_RR is refused in this control group (%v): the link emulator tries to leave it", err)
	f.Mend = "start skerry from the root of the cpu controller: echo $$ > /sys/fs/cgroup/cpu/cgroup.procs"
	return f
}

// clock reads the kernel's clock source. Some cost a system call and more than 1 µs per reading.
func clock() Finding {
	const name, dir = "clock", "/sys/devices/system/clocksource/clocksource0/"
	text, err := os.ReadFile(dir + "current_clocksource")
	if err != nil {
		return failed(name, Limited, fmt.Errorf("reading the clock's source: %w", err))
	}
	switch source := strings.TrimSpace(string(text)); source {
	case "tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page":
		return Finding{Name: name, State: OK, Detail: source}
	default:
		f := Finding{Name: name, State: Limited, Detail: source + " is slow to read: latencies get less exact"}
		if others, err := os.ReadFile(dir + "available_clocksource"); err == nil && strings.Contains(string(others), "tsc") {
			f.Mend = "echo tsc > " + dir + "current_clocksource"
		}
		return f
	}
}

func processors() Finding {
	f := Finding{Name: "processors", State: OK, Detail: strconv.Itoa(runtime.NumCPU())}
	if runtime.NumCPU() < wantProcessors {
		f.State, f.Mend = Limited, "give the machine 2 processors or more"
		f.Detail += ": the emulator, the databases and the load driver share it"
	}
	return f
}

func memory() Finding {
	const name = "memory"
	free, err := procfs.AvailableMemory()
	if err != nil {
		return failed(name, Limited, err)
	}
	f := Finding{Name: name, State: OK, Detail: fmt.Sprintf("%.1f GiB available", float64(free)/(1<<30))}
	if free < wantMemory {
		f.State, f.Mend = Limited, "end other programs, or use fewer nodes"
	}
	return f
}

// disk checks the file systems of the cache and of temporary files.
func disk(cache string) Finding {
	f := Finding{Name: "disk", State: OK}
	var free []string
	for _, dir := range []string{existing(cache), os.TempDir()} {
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			return failed(f.Name, Limited, fmt.Errorf("reading the free space of %s: %w", dir, err))
		}
		bytes := int64(s.Bavail) * s.Bsize
		free = append(free, fmt.Sprintf("%.1f GiB free in %s", float64(bytes)/(1<<30), dir))
		if bytes < wantDisk {
			f.State, f.Mend = Limited, "free some space, or set SKERRY_CACHE and TMPDIR to folders elsewhere"
		}
	}
	f.Detail = strings.Join(free, ", ")
	return f
}

// existing returns path or its nearest existing parent.
func existing(path string) string {
	for path != "/" && path != "." {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

func openFiles() Finding {
	return limit("open files", unix.RLIMIT_NOFILE, wantFiles, "ulimit -n 65536, or nofile in /etc/security/limits.conf")
}

func processes() Finding {
	return limit("processes", unix.RLIMIT_NPROC, wantProcesses, "ulimit -u 65536, or nproc in /etc/security/limits.conf")
}

func limit(name string, resource int, want uint64, mend string) Finding {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return failed(name, Limited, fmt.Errorf("reading the limit on %s: %w", name, err))
	}
	if r.Max == unix.RLIM_INFINITY {
		return Finding{Name: name, State: OK, Detail: "no limit"}
	}
	f := Finding{Name: name, State: OK, Detail: fmt.Sprintf("up to %d", r.Max)}
	if r.Max < want {
		f.State, f.Mend = Limited, mend
	}
	return f
}
