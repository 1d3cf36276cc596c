package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
	"skerry/internal/machine/statedir"
)

// remains are what a lab's directory tells of the lab: enough to clear it, whatever of
// it was made and however little of the journal can be read.
type remains struct {
	place     statedir.Place
	id        string        // "" when nothing was made
	plan      *journal.Plan // nil when the journal says none
	record    *record       // nil when the lab is half made or half gone, or not to be read
	unread    error         // why it is not known what the lab is
	processes []journal.Process
	sameBoot  bool
}

// inspect reads a lab's directory.
func inspect(p statedir.Place) remains {
	r := remains{place: p}
	if id, err := os.Readlink(p.File(statedir.ID)); err == nil {
		r.id = id
	}
	data, err := os.ReadFile(p.File(statedir.Journal))
	if err == nil {
		r.plan, r.processes = journal.Read(data)
	}
	if r.plan != nil && r.id == "" {
		r.id = r.plan.ID
	}
	s, err := readRecord(p)
	switch {
	case err == nil:
		r.record = &s
	case !errors.Is(err, fs.ErrNotExist):
		r.unread = err
	}
	boot, err := procfs.BootID()
	if err != nil {
		r.unread = errors.Join(r.unread, err)
	}
	r.sameBoot = err != nil || r.plan != nil && r.plan.Boot == boot || r.record != nil && r.record.Boot == boot
	return r
}

// doubt is an error when a lab that does not look alive may yet be: what says so cannot be
// read, and the machine may not have been restarted since.
func (r remains) doubt() error {
	if r.unread == nil || !r.sameBoot && r.plan != nil {
		return nil
	}
	err := fmt.Errorf("lab %s may be up: %w", r.place.Name, r.unread)
	return advice.With(err, "if it is not wanted: skerry lab down %s", r.place.Name)
}

// alive tells whether a lab that nobody owns is one that is meant to stay up.
func (r remains) alive() bool {
	if r.record == nil || r.record.Owned || !r.sameBoot {
		return false
	}
	return r.record.Holder == nil || r.record.Holder.Alive()
}

// damage says what is missing of a lab that is alive, "" when nothing is.
func (r remains) damage() string {
	switch s := r.record; {
	case s.Emulator != nil && !s.Emulator.Alive():
		return "its link emulator has ended"
	case s.Holder == nil && !network.Mounted(r.place.Namespaces()):
		return "its network namespaces are not mounted"
	}
	return ""
}

// clear removes everything the lab made: processes, devices, namespaces, mounts,
// control groups, directories. It goes on after failures, and may be called again.
func (r remains) clear(ctx context.Context) error {
	// A lab without this file is half gone, whatever happens to this process now.
	errs := []error{statedir.Remove(r.place.File(statedir.Record))}
	if r.id == "" {
		return errors.Join(append(errs, r.place.RemoveFiles())...)
	}
	// What a process holds cannot be removed: the rest waits for another try.
	if err := r.kill(ctx); err != nil {
		return fmt.Errorf("clear lab %s: %w", r.place.Name, err)
	}
	errs = append(errs,
		r.removeHeldDevices(),
		hide(r.place.Dir(), r.plan != nil && r.plan.MadeNames),
		network.Unmount(r.place.Namespaces()),
		r.removeGroups(),
		r.removeData(),
	)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clear lab %s: %w", r.place.Name, err)
	}
	return r.place.RemoveFiles()
}
