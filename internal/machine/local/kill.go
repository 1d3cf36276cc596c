package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
)

const (
	// asking is how long the emulator may take to end when asked to: it removes the
	// devices of 1000 links in 4 s.
	termTimeout = 20 * time.Second
	// dying is how long a killed process may take: the kernel closes the devices of an
	// emulator with 1000 links, one after the other, in 35 s.
	killTimeout = time.Minute
	// glance is how often processes are looked for that are ending.
	processPoll = 2 * time.Millisecond
	// listings is how often a control group is listed in which every process has ended by
	// the next time.
	listings = 100
)

// kill ends all processes of the lab.
func (r remains) kill(ctx context.Context) error {
	for _, p := range r.processes {
		if p.Name == journal.Emulator && r.sameBoot && p.Alive() {
			r.terminate(ctx, p.Process)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	for {
		running, err := r.runningProcesses()
		if err != nil || len(running) == 0 {
			return err
		}
		for _, p := range running {
			if err := p.Kill(); err != nil {
				return err
			}
		}
		if err := linger.For(ctx, processPoll); err != nil {
			return fmt.Errorf("process %d does not end: %w", running[0].PID, err)
		}
	}
}

// terminate asks a process to end and waits for it.
func (r remains) terminate(ctx context.Context, p procfs.Process) {
	if unix.Kill(p.PID, unix.SIGTERM) != nil {
		return
	}
	late := time.After(termTimeout)
	for p.Alive() {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-time.After(processPoll):
		}
	}
}

// runningProcesses are the lab's processes: those in its control group, those that bear its tag,
// those of the journal and, where there are no control groups, those in its namespaces:
// a program may overwrite its environment, and its children are in no journal.
func (r remains) runningProcesses() ([]procfs.Process, error) {
	found, err := r.groupProcesses()
	if err != nil {
		return nil, err
	}
	if r.sameBoot {
		for _, p := range r.processes {
			found = append(found, p.Process)
		}
	}
	var spaces map[uint64]string
	if r.record == nil || !r.record.Groups {
		spaces = r.spaces()
	}
	all, err := findProcesses(func(pid int) bool {
		if hasTag(pid, r.id) {
			return true
		}
		if len(spaces) == 0 {
			return false
		}
		id, err := netns.ID(fmt.Sprintf("/proc/%d/ns/net", pid))
		return err == nil && spaces[id] != ""
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(found, all...), func(p procfs.Process) bool {
		return p.PID == os.Getpid() || !p.Alive()
	}), nil
}

func hasTag(pid int, lab string) bool { return procfs.ReadEnv(pid, host.LabVariable) == lab }

// processesWithTag are the processes that bear a lab's tag.
func processesWithTag(lab string) ([]procfs.Process, error) {
	return findProcesses(func(pid int) bool { return hasTag(pid, lab) })
}

// findProcesses are those of the machine that a test holds for. Each is identified before the
// test: should its ID be used again meanwhile, what is returned is a process that is gone.
func findProcesses(test func(pid int) bool) ([]procfs.Process, error) {
	all, err := procfs.ListPIDs()
	if err != nil {
		return nil, err
	}
	var found []procfs.Process
	for _, pid := range all {
		if p, err := procfs.FindProcess(pid); err == nil && test(pid) {
			found = append(found, p)
		}
	}
	return found, nil
}

// groupProcesses are the processes in the lab's control group. They are listed twice, since only
// those are safely identified that are in it before and after.
func (r remains) groupProcesses() ([]procfs.Process, error) {
	tree, err := cgroup.Open()
	if errors.Is(err, cgroup.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	group := tree.Group(r.id)
	known := map[int]procfs.Process{}
	for range listings {
		pids, err := group.Processes()
		if err != nil {
			return nil, err
		}
		var found []procfs.Process
		for _, pid := range pids {
			if p, ok := known[pid]; ok {
				found = append(found, p)
			}
		}
		if len(found) > 0 || len(pids) == 0 {
			return found, nil
		}
		for _, pid := range pids {
			if p, err := procfs.FindProcess(pid); err == nil {
				known[pid] = p
			}
		}
	}
	return nil, fmt.Errorf("identify processes of control group %s: %w", r.id, procfs.ErrGone)
}

// spaces are the lab's namespaces that exist, by their identity.
func (r remains) spaces() map[uint64]string {
	entries, err := os.ReadDir(r.place.Namespaces())
	if err != nil {
		return nil
	}
	if !network.Mounted(r.place.Namespaces()) {
		return nil // the files are not namespaces
	}
	spaces := make(map[uint64]string, len(entries))
	for _, e := range entries {
		path := r.place.Namespace(e.Name())
		if id, err := netns.ID(path); err == nil {
			spaces[id] = path
		}
	}
	return spaces
}
