package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"skerry/internal/cgroup"
	"skerry/internal/netns"
	"skerry/internal/procfs"
)

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
		if err = unmountDisks(dir); err == nil {
			err = removeKeeping(dir, madeFile)
		}
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

// unmountDisks unmounts the disks of their own and the volumes that nodes have: what is
// mounted in a lab's data directory is the lab's, and so is a mount of it on itself.
func unmountDisks(data string) error {
	entries, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if dir := filepath.Join(data, e.Name()); e.IsDir() && mounted(dir) {
			if err := unmount(dir); err != nil {
				return err
			}
		}
	}
	if mounted(data) {
		return unmount(data)
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
