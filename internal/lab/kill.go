package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/cgroup"
	"skerry/internal/host"
	"skerry/internal/netns"
	"skerry/internal/procfs"
)

const (
	// asking is how long the emulator may take to end when asked to: it removes the
	// devices of 1000 links in 4 s.
	asking = 20 * time.Second
	// dying is how long a killed process may take: the kernel closes the devices of an
	// emulator with 1000 links, one after the other, in 35 s.
	dying = time.Minute
	// glance is how often processes are looked for that are ending.
	glance = 2 * time.Millisecond
)

// kill ends all processes of the lab.
func (r remains) kill(ctx context.Context) error {
	for _, p := range r.processes {
		if p.Name == emulator && r.sameBoot && p.Alive() {
			r.ask(ctx, p.Process)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dying)
	defer cancel()
	for {
		running, err := r.running()
		if err != nil || len(running) == 0 {
			return err
		}
		for _, p := range running {
			if err := p.Kill(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d does not end: %w", running[0].PID, ctx.Err())
		case <-time.After(glance):
		}
	}
}

// ask asks a process to end and waits for it.
func (r remains) ask(ctx context.Context, p procfs.Process) {
	if unix.Kill(p.PID, unix.SIGTERM) != nil {
		return
	}
	late := time.After(asking)
	for p.Alive() {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-time.After(glance):
		}
	}
}

// running are the lab's processes: those in its control group, those that bear its tag,
// those of the journal and, where there are no control groups, those in its namespaces:
// a program may overwrite its environment, and its children are in no journal.
func (r remains) running() ([]procfs.Process, error) {
	pids := map[int]bool{}
	if r.sameBoot {
		for _, p := range r.processes {
			if p.Alive() {
				pids[p.PID] = true
			}
		}
	}
	grouped, err := r.grouped()
	if err != nil {
		return nil, err
	}
	for _, pid := range grouped {
		pids[pid] = true
	}
	all, err := procfs.All()
	if err != nil {
		return nil, err
	}
	var spaces map[uint64]string
	if r.state == nil || !r.state.Groups {
		spaces = r.spaces()
	}
	for _, pid := range all {
		if procfs.Environ(pid, host.LabVariable) == r.id {
			pids[pid] = true
		}
		if len(spaces) > 0 {
			if id, err := netns.ID(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && spaces[id] != "" {
				pids[pid] = true
			}
		}
	}
	delete(pids, os.Getpid())
	var running []procfs.Process
	for pid := range pids {
		if p, err := procfs.Of(pid); err == nil && p.Alive() {
			running = append(running, p)
		}
	}
	return running, nil
}

func (r remains) grouped() ([]int, error) {
	tree, err := cgroup.Open()
	if errors.Is(err, cgroup.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return tree.Group(r.id).Processes()
}

// spaces are the lab's namespaces that exist, by their identity.
func (r remains) spaces() map[uint64]string {
	entries, err := os.ReadDir(r.place.namespaces())
	if err != nil {
		return nil
	}
	if !mounted(r.place.namespaces()) {
		return nil // the files are not namespaces
	}
	spaces := make(map[uint64]string, len(entries))
	for _, e := range entries {
		path := r.place.namespace(e.Name())
		if id, err := netns.ID(path); err == nil {
			spaces[id] = path
		}
	}
	return spaces
}
