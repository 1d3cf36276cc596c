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
	// termTimeout is the time for an emulator to end after SIGTERM: it removes the devices of 1000 links in 4 s.
	termTimeout = 20 * time.Second
	// killTimeout is the time for a killed process to end: the kernel closes an emulator's devices one by one, 1000 links
	// in 35 s.
	killTimeout = time.Minute
	// processPoll is the interval between checks for ending processes.
	processPoll = 2 * time.Millisecond
	// listings bounds how often a control group is listed whose processes end between listings.
	listings = 100
)

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

// terminate sends SIGTERM and waits.
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

// runningProcesses returns the lab's processes: those in its control group, those with its tag, those in the journal and,
// without control groups, those in its namespaces. Tag and journal do not suffice, because a program may overwrite its
// environment and its children are not in the journal.
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
	all, err := procfs.FindProcesses(func(pid int) bool {
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

func processesWithTag(lab string) ([]procfs.Process, error) {
	return procfs.FindProcesses(func(pid int) bool { return hasTag(pid, lab) })
}

// groupProcesses returns the processes in the lab's control group. It lists them twice: only processes that are in the
// group before and after are identified safely.
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

// spaces returns the lab's namespaces by inode.
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
