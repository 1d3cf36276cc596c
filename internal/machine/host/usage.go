package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/procfs"
)

// Usage returns the usage of the node's processes from its control group. Without the group or a controller it adds up the
// processes that Start started and their children; throttling is then unknown.
func (n *Node) Usage() (Usage, error) {
	u, err := n.groupUsage()
	if err != nil {
		return u, err
	}
	pids, err := n.listProcesses()
	if err != nil {
		return u, fmt.Errorf("list the processes of %s: %w", n.spec.Name, err)
	}
	n.delays.Lock()
	defer n.delays.Unlock()
	u.Waits.Processor, u.Waits.ProcessorKnown = n.delays.Update(pids)
	return u, nil
}

// listProcesses returns the node's processes. It does not make a control group.
func (n *Node) listProcesses() ([]int, error) {
	if n.spec.Group != nil {
		return n.spec.Group.Processes()
	}
	return n.families(), nil
}

// groupUsage is Usage without processor waiting times, which cost more than everything else.
func (n *Node) groupUsage() (Usage, error) {
	var u Usage
	var cpu, memory, io bool
	if g := n.spec.Group; g != nil {
		got, err := g.Usage()
		if err != nil {
			return u, fmt.Errorf("usage of %s: %w", n.spec.Name, err)
		}
		u = Usage{CPU: got.CPU, User: got.User, System: got.System, Throttled: got.Throttled, Memory: got.Memory, ReadBytes: got.Read, WroteBytes: got.Wrote,
			Grouped: got.HasCPU, Waits: Waits{Disk: got.DiskWait, DiskKnown: got.HasDiskWait}}
		cpu, memory, io = got.HasCPU, got.HasMemory, got.HasIO
	}
	if cpu && memory && io {
		return u, nil
	}
	sum := n.processUsage()
	if !cpu {
		u.CPU = sum.CPU
	}
	if !memory {
		u.Memory = sum.Memory
	}
	if !io {
		u.ReadBytes, u.WroteBytes = sum.ReadBytes, sum.WroteBytes
	}
	return u, nil
}

// processUsage adds up processes from /proc.
func (n *Node) processUsage() Usage {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := n.ended
	for p := range n.running {
		sum.add(familyUsage(p.PID()))
	}
	return sum
}

// retireProcess keeps the usage of a process that has ended and is not yet reaped.
func (n *Node) retireProcess(pid int) {
	used := familyUsage(pid)
	used.Memory = 0
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended.add(used)
	for p := range n.running {
		if p.PID() == pid {
			delete(n.running, p)
		}
	}
}

func (u *Usage) add(v Usage) {
	u.CPU += v.CPU
	u.Memory += v.Memory
	u.ReadBytes += v.ReadBytes
	u.WroteBytes += v.WroteBytes
}

// familyUsage returns the usage of a process and its descendants.
func familyUsage(pid int) Usage {
	s, err := procfs.ReadStat(pid)
	if err != nil {
		return Usage{}
	}
	u := Usage{CPU: s.CPU, Memory: s.Resident}
	if read, wrote, err := procfs.ReadIO(pid); err == nil {
		u.ReadBytes, u.WroteBytes = read, wrote
	}
	for _, child := range procfs.ListChildren(pid) {
		u.add(familyUsage(child))
	}
	return u
}

// freezing is the interval between checks that all processes have stopped: a process that was forking when it was stopped
// leaves its child running.
const freezing = time.Millisecond

// Freeze stops every process of the node (SIGSTOP) and returns when all have stopped.
func (n *Node) Freeze(ctx context.Context) error {
	for {
		running, err := n.signal(unix.SIGSTOP)
		if err != nil {
			return fmt.Errorf("freeze %s: %w", n.spec.Name, err)
		}
		if running == 0 {
			return nil
		}
		if err := linger.For(ctx, freezing); err != nil {
			return fmt.Errorf("freeze %s: %w", n.spec.Name, err)
		}
	}
}

// Thaw resumes the node's processes (SIGCONT).
func (n *Node) Thaw() error {
	if _, err := n.signal(unix.SIGCONT); err != nil {
		return fmt.Errorf("thaw %s: %w", n.spec.Name, err)
	}
	return nil
}

// signal signals the node's processes and counts those that may still run before they receive it. A process in
// uninterruptible sleep (D) is not counted: it may stay there indefinitely, such as the parent of a stopped vfork child.
func (n *Node) signal(s unix.Signal) (running int, err error) {
	pids, err := n.processes()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		st, err := procfs.ReadStat(pid)
		if err != nil {
			continue // it has ended
		}
		if !strings.ContainsRune("TDZX", rune(st.State)) {
			running++
		}
		if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
			return running, err
		}
	}
	return running, nil
}

// processes returns the control group's processes or, without one, those that Start started and their children.
func (n *Node) processes() ([]int, error) {
	if g, err := n.controlGroup(); err != nil || g != nil {
		if err != nil {
			return nil, err
		}
		return g.Processes()
	}
	return n.families(), nil
}

// families returns the processes that Start started and their children.
func (n *Node) families() (pids []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var add func(pid int)
	add = func(pid int) {
		pids = append(pids, pid)
		for _, child := range procfs.ListChildren(pid) {
			add(child)
		}
	}
	for p := range n.running {
		add(p.PID())
	}
	return pids
}

// ErrNoGroup is returned for an operation that needs a control group if the node has none.
var ErrNoGroup = errors.New("no control group")

// ErrWhole is returned for an operation that would affect a whole machine.
var ErrWhole = errors.New("the node is a whole machine")

// LimitDisk limits the node's throughput on the disk of its directory. It replaces an earlier limit; the limits of the
// node's specification still apply.
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

// MountDisk mounts a file system of the given size in memory on the node's empty directory. It can be full without
// affecting the machine's disk. The process that removes the lab's directories unmounts it.
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

// fillTries bounds the attempts to shrink a disk while processes write to it.
const fillTries = 100

// FillDisk shrinks MountDisk's disk to its content, so that no space is left.
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

// FreeDisk restores the size of MountDisk's disk.
func (n *Node) FreeDisk() error {
	if err := n.resizeDisk(n.disk); err != nil {
		return fmt.Errorf("free the disk of %s: %w", n.spec.Name, err)
	}
	return nil
}

func (n *Node) resizeDisk(bytes int64) error {
	return unix.Mount("", n.spec.Dir, "", unix.MS_REMOUNT|unix.MS_NODEV, fmt.Sprintf("size=%d", bytes))
}

// LimitCPU changes the CPU quota of the node, in cores.
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

// Used returns the processor time that the node used and that its quota withheld.
func (n *Node) Used() (used, throttled time.Duration, err error) {
	u, err := n.groupUsage()
	return u.CPU, u.Throttled, err
}
