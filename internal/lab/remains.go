package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"skerry/internal/advice"
	"skerry/internal/procfs"
)

// remains are what a lab's directory tells of the lab: enough to clear it, whatever of
// it was made and however little of the journal can be read.
type remains struct {
	place     place
	id        string // "" when nothing was made
	plan      *plan  // nil when the journal says none
	state     *state // nil when the lab is half made or half gone, or not to be read
	unread    error  // why it is not known what the lab is
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
	s, err := readState(p)
	switch {
	case err == nil:
		r.state = &s
	case !errors.Is(err, fs.ErrNotExist):
		r.unread = err
	}
	boot, err := procfs.BootID()
	if err != nil {
		r.unread = errors.Join(r.unread, err)
	}
	r.sameBoot = err != nil || r.plan != nil && r.plan.Boot == boot || r.state != nil && r.state.Boot == boot
	return r
}

// doubt is an error when a lab that does not look alive may yet be: what says so cannot be
// read, and the machine may not have been restarted since.
func (r remains) doubt() error {
	if r.unread == nil || !r.sameBoot && r.plan != nil {
		return nil
	}
	err := fmt.Errorf("lab %s may be up: %w", r.place.name, r.unread)
	return advice.With(err, "if it is not wanted: skerry lab down %s", r.place.name)
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
