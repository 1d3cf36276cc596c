package host

import (
	"fmt"

	"skerry/internal/kernel/procfs"
)

// Usage reads what the node's processes have used, from its control group. Where that
// lacks a controller, and where there is none, the processes that Start started and
// their children are added up; there is no telling how often they were throttled.
func (n *Node) Usage() (Usage, error) {
	u, err := n.used()
	if err != nil {
		return u, err
	}
	pids, err := n.present()
	if err != nil {
		return u, fmt.Errorf("list the processes of %s: %w", n.spec.Name, err)
	}
	n.delays.Lock()
	defer n.delays.Unlock()
	u.Waits.Processor, u.Waits.ProcessorKnown = n.delays.Update(pids)
	return u, nil
}

// present are the node's processes; it makes no control group for a node that has not started any.
func (n *Node) present() ([]int, error) {
	if n.spec.Group != nil {
		return n.spec.Group.Processes()
	}
	return n.families(), nil
}

// used is Usage without what processes waited for a processor, which costs more than all else.
func (n *Node) used() (Usage, error) {
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
	sum := n.sum()
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

// sum adds up processes by /proc.
func (n *Node) sum() Usage {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := n.ended
	for p := range n.running {
		sum.add(family(p.PID()))
	}
	return sum
}

// retire remembers what a process used that has ended and was not waited for.
func (n *Node) retire(pid int) {
	used := family(pid)
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

// family is the usage of a process and of its children, and of theirs.
func family(pid int) Usage {
	s, err := procfs.ReadStat(pid)
	if err != nil {
		return Usage{}
	}
	u := Usage{CPU: s.CPU, Memory: s.Resident}
	if read, wrote, err := procfs.ReadIO(pid); err == nil {
		u.ReadBytes, u.WroteBytes = read, wrote
	}
	for _, child := range procfs.ListChildren(pid) {
		u.add(family(child))
	}
	return u
}
