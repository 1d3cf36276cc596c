package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
)

// MakeOwnedDir makes a directory that is skerry's, and marks it so that Disown removes it. It is
// marked before it gets its name: a command that is killed between leaves what SweepNew
// knows.
func MakeOwnedDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(dir); err == nil {
			return CheckOwner(dir)
		}
		err := os.Mkdir(dir+newSuffix, 0o755)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Symlink("made by skerry", filepath.Join(dir+newSuffix, Mark))
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Rename(dir+newSuffix, dir)
		}
		switch {
		case err == nil:
			return CheckOwner(dir) // another user may have created it
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTEMPTY):
			// Another command was faster.
		default:
			RemoveUnfinishedDir(dir)
			return err
		}
	}
}

// newSuffix is that of a directory which Own is making.
const newSuffix = ".skerry-new"

// RemoveUnfinishedDir removes what Own was making when it was killed.
func RemoveUnfinishedDir(dir string) {
	_ = os.Remove(filepath.Join(dir+newSuffix, Mark)) // neither may be there
	_ = unix.Rmdir(dir + newSuffix)
}

// CheckOwner refuses a directory that another user created in a shared folder.
func CheckOwner(dir string) error {
	var above, here unix.Stat_t
	if err := unix.Stat(filepath.Dir(dir), &above); err != nil {
		return &os.PathError{Op: "stat", Path: filepath.Dir(dir), Err: err}
	}
	if err := unix.Lstat(dir, &here); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if owner := int(here.Uid); above.Mode&unix.S_IWOTH != 0 && owner != os.Geteuid() && owner != 0 {
		return advice.With(fmt.Errorf("%s belongs to user %d", dir, owner), "give other directories by SKERRY_STATE and SKERRY_DATA")
	}
	return nil
}

// RemoveOwnedDir removes a directory that Own made and in which nothing is left.
func RemoveOwnedDir(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != Mark {
		return
	}
	if os.Remove(filepath.Join(dir, Mark)) == nil {
		_ = os.Remove(dir) // it may not be empty any more
	}
}

// RemoveFiles removes the lab's directory, what identifies the lab last: should it fail
// on the way, the next try knows what it is about.
func (p LabDir) RemoveFiles() error {
	err := RemoveContents(p.Dir(), JournalFile, IDFile)
	if err == nil {
		err = RemovePath(p.Dir())
	}
	if err != nil {
		return fmt.Errorf("remove directory of lab: %w", err)
	}
	return nil
}

// RemoveContents removes what is in a directory, and those named after the rest.
func RemoveContents(dir string, last ...string) error {
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
		if err := RemovePath(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// RemovePath removes a file or an empty directory that may be gone.
func RemovePath(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveIfEmpty removes the state directory when no lab is left in it.
func (s Store) RemoveIfEmpty(ctx context.Context) error {
	lock, err := s.LockExisting(ctx)
	if lock != nil {
		s.Release(lock)
	}
	return err
}
