package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
)

// remains describes a lab from its directory: enough to remove it, however incomplete the lab or its journal is.
type remains struct {
	place     journal.LabDir
	id        string        // "" when nothing was made
	plan      *journal.Plan // nil if the journal has none
	record    *record       // nil when the lab is half made or half gone, or not to be read
	unread    error         // why it is not known what the lab is
	processes []journal.Process
	sameBoot  bool
}

func inspect(p journal.LabDir) remains {
	r := remains{place: p}
	if id, err := os.Readlink(p.Path(journal.IDFile)); err == nil {
		r.id = id
	}
	data, err := os.ReadFile(p.Path(journal.JournalFile))
	if err == nil {
		r.plan, r.processes = journal.Parse(data)
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

// doubt returns an error if a lab that looks dead may be alive: its record is unreadable, and the machine may not have
// restarted since.
func (r remains) doubt() error {
	if r.unread == nil || !r.sameBoot && r.plan != nil {
		return nil
	}
	err := fmt.Errorf("lab %s may be up: %w", r.place.Name, r.unread)
	return advice.With(err, "if it is not wanted: skerry lab down %s", r.place.Name)
}

// alive reports whether a lab without an owner is committed.
func (r remains) alive() bool {
	if r.record == nil || r.record.Owned || !r.sameBoot {
		return false
	}
	return r.record.Holder == nil || r.record.Holder.Alive()
}

// damage describes the missing parts of a running lab, "" if it is complete.
func (r remains) damage() string {
	switch s := r.record; {
	case s.Emulator != nil && !s.Emulator.Alive():
		return "its link emulator has ended"
	case s.Holder == nil && !network.Mounted(r.place.Namespaces()):
		return "its network namespaces are not mounted"
	}
	return ""
}

// clear removes everything the lab made: processes, devices, namespaces, mounts, control groups, directories. It continues
// after failures and can be repeated.
func (r remains) clear(ctx context.Context) error {
	// Without this file the lab is incomplete, even if this process is killed now.
	errs := []error{journal.RemovePath(r.place.Path(journal.RecordFile))}
	if r.id == "" {
		return errors.Join(append(errs, r.place.RemoveFiles())...)
	}
	// Resources of a running process cannot be removed; a later attempt can.
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

// removeHeldDevices removes the devices of namespaces that another program's process is in. Other devices are removed with
// their namespaces, which is much faster.
func (r remains) removeHeldDevices() error {
	spaces := r.spaces()
	if len(spaces) == 0 {
		return nil
	}
	all, err := procfs.ListPIDs()
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
		errs = append(errs, network.RemoveDevices(path))
	}
	return errors.Join(errs...)
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

// removeData removes the nodes' directories if the journal names them and their mark confirms it.
func (r remains) removeData() error {
	if r.plan == nil {
		return nil
	}
	dir := r.plan.Data
	if filepath.Base(dir) != r.id {
		return nil
	}
	journal.RemoveUnfinishedDir(filepath.Dir(dir))
	return removeMarked(dir, r.place.Dir())
}

// removeMarked removes a data directory if its mark names the lab's directory, or if it is empty.
func removeMarked(dir, lab string) error {
	mark, err := os.Readlink(filepath.Join(dir, journal.Mark))
	switch {
	case err == nil && mark == lab:
		if err = unmountDisks(dir); err == nil {
			err = journal.RemoveContents(dir, journal.Mark)
		}
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	default:
		return err
	}
	if err == nil {
		err = journal.RemovePath(dir)
	}
	if err == nil {
		journal.RemoveOwnedDir(filepath.Dir(dir))
	}
	if err != nil {
		return fmt.Errorf("remove data directory: %w", err)
	}
	return nil
}

// unmountDisks unmounts the nodes' disks and volumes: every mount in a lab's data directory belongs to the lab, as does a
// bind mount of the directory on itself.
func unmountDisks(data string) error {
	entries, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if dir := filepath.Join(data, e.Name()); e.IsDir() && network.Mounted(dir) {
			if err := network.Unmount(dir); err != nil {
				return err
			}
		}
	}
	if network.Mounted(data) {
		return network.Unmount(data)
	}
	return nil
}
