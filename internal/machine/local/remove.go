package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/network"
	"skerry/internal/machine/statedir"
)

// removeHeldDevices removes the devices of namespaces that a process which is not the
// lab's is in. Those of the others go with their namespaces, and much faster.
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
	statedir.SweepNew(filepath.Dir(dir))
	return removeMarked(dir, r.place.Dir())
}

// removeMarked removes a lab's data directory when its mark names the lab's own
// directory, or when nothing is in it yet.
func removeMarked(dir, lab string) error {
	mark, err := os.Readlink(filepath.Join(dir, statedir.Mark))
	switch {
	case err == nil && mark == lab:
		if err = unmountDisks(dir); err == nil {
			err = statedir.RemoveKeeping(dir, statedir.Mark)
		}
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	default:
		return err
	}
	if err == nil {
		err = statedir.Remove(dir)
	}
	if err == nil {
		statedir.Disown(filepath.Dir(dir))
	}
	if err != nil {
		return fmt.Errorf("remove data directory: %w", err)
	}
	return nil
}

// unmountDisks unmounts the disks of their own and the volumes that nodes have: what is
// mounted in a lab's data directory is the lab's, and so is a mount of it on itself.
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
