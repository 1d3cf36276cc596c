package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/cgroup"
	"skerry/internal/host"
	"skerry/internal/netns"
	"skerry/internal/procfs"
)

// remains are what a lab's directory tells of the lab: enough to clear it, whatever of
// it was made and however little of the journal can be read.
type remains struct {
	place     place
	id        string // "" when nothing was made
	plan      *plan  // nil when the journal says none
	state     *state // nil when the lab is half made or half gone
	processes []namedProcess
	sameBoot  bool
}

// inspect reads a lab's directory.
func inspect(p place) remains {
	r := remains{place: p}
	if id, err := os.Readlink(p.file(idFile)); err == nil {
		r.id = id
	}
	data, err := os.ReadFile(p.file(journalFile))
	if err == nil {
		r.plan, r.processes = readJournal(data)
	}
	if r.plan != nil && r.id == "" {
		r.id = r.plan.ID
	}
	if s, err := readState(p); err == nil {
		r.state = &s
	}
	boot, err := procfs.BootID()
	r.sameBoot = err == nil && (r.plan != nil && r.plan.Boot == boot || r.state != nil && r.state.Boot == boot)
	return r
}

// alive tells whether a lab that nobody owns is one that is meant to stay up.
func (r remains) alive() bool {
	if r.state == nil || r.state.Ephemeral || !r.sameBoot {
		return false
	}
	return r.state.Holder == nil || r.state.Holder.Alive()
}

// damage says what is missing of a lab that is alive, "" when nothing is.
func (r remains) damage() string {
	switch s := r.state; {
	case s.Emulator != nil && !s.Emulator.Alive():
		return "its link emulator has ended"
	case s.Holder == nil && !mounted(r.place.namespaces()):
		return "its network namespaces are not mounted"
	}
	return ""
}

// mounted tells whether something is mounted at a directory. Within a user namespace
// mounts are seen by the processes in it alone.
func mounted(dir string) bool {
	var here, above unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_BASIC_STATS, &here) != nil {
		return false
	}
	if here.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return here.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	err := unix.Statx(unix.AT_FDCWD, filepath.Dir(dir), 0, unix.STATX_BASIC_STATS, &above)
	return err != nil || here.Dev_minor != above.Dev_minor || here.Dev_major != above.Dev_major
}

// clear removes everything the lab made: processes, devices, namespaces, mounts,
// control groups, directories. It goes on after failures, and may be called again.
func (r remains) clear(ctx context.Context) error {
	// A lab without this file is half gone, whatever happens to this process now.
	errs := []error{remove(r.place.file(stateFile))}
	if r.id == "" {
		return errors.Join(append(errs, r.place.removeFiles())...)
	}
	// What a process holds cannot be removed: the rest waits for another try.
	if err := r.kill(ctx); err != nil {
		return fmt.Errorf("clear lab %s: %w", r.place.name, err)
	}
	errs = append(errs,
		r.removeHeldDevices(),
		hide(r.place.dir(), r.plan != nil && r.plan.MadeNames),
		unmount(r.place.namespaces()),
		r.removeGroups(),
		r.removeData(),
	)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clear lab %s: %w", r.place.name, err)
	}
	return r.place.removeFiles()
}

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

// removeHeldDevices removes the devices of namespaces that a process which is not the
// lab's is in. Those of the others go with their namespaces, and much faster.
func (r remains) removeHeldDevices() error {
	spaces := r.spaces()
	if len(spaces) == 0 {
		return nil
	}
	all, err := procfs.All()
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, pid := range all {
		if id, err := netns.ID(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && spaces[id] != "" {
			held[spaces[id]] = true
		}
	}
	var errs []error
	for path := range held {
		errs = append(errs, removeDevices(path))
	}
	return errors.Join(errs...)
}

// unmount undoes mountNamespaces, with all that is mounted below.
func unmount(dir string) error {
	for {
		err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil: // perhaps mounted more than once
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EPERM) && !mounted(dir):
			return nil // that of a rootless lab, seen from outside its namespace
		default:
			return &os.PathError{Op: "unmount", Path: dir, Err: err}
		}
	}
}

func (r remains) removeGroups() error {
	tree, err := cgroup.Open()
	if errors.Is(err, cgroup.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return tree.Group(r.id).Remove()
}

// removeData removes the nodes' directories, which the journal names and their mark
// confirms.
func (r remains) removeData() error {
	if r.plan == nil {
		return nil
	}
	dir := r.plan.Data
	if filepath.Base(dir) != r.id {
		return nil
	}
	sweepNew(filepath.Dir(dir))
	return removeMarked(dir, r.place.dir())
}

// removeMarked removes a lab's data directory when its mark names the lab's own
// directory, or when nothing is in it yet.
func removeMarked(dir, lab string) error {
	mark, err := os.Readlink(filepath.Join(dir, madeFile))
	switch {
	case err == nil && mark == lab:
		err = removeKeeping(dir, madeFile)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	default:
		return err
	}
	if err == nil {
		err = remove(dir)
	}
	if err == nil {
		disown(filepath.Dir(dir))
	}
	if err != nil {
		return fmt.Errorf("remove data directory: %w", err)
	}
	return nil
}

// removeFiles removes the lab's directory, what identifies the lab last: should it fail
// on the way, the next try knows what it is about.
func (p place) removeFiles() error {
	err := removeKeeping(p.dir(), journalFile, idFile)
	if err == nil {
		err = remove(p.dir())
	}
	if err != nil {
		return fmt.Errorf("remove directory of lab: %w", err)
	}
	return nil
}

// removeKeeping removes what is in a directory, and those named after the rest.
func removeKeeping(dir string, last ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !slices.Contains(last, e.Name()) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range last {
		if err := remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file or an empty directory that may be gone.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
