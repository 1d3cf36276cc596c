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

// MakeOwnedDir makes a directory with a mark that RemoveOwnedDir checks. The directory gets its final name last, so that
// RemoveUnfinishedDir recognises what a killed command left.
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
			err = markDir(dir + newSuffix)
		}
		if err == nil {
			err = os.Rename(dir+newSuffix, dir)
		}
		if err == nil { // a faster process may have renamed the marked directory, and this one an unmarked one of a third
			err = markDir(dir)
		}
		switch {
		case err == nil:
			return CheckOwner(dir) // another user may have created it
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTEMPTY):
			RemoveUnfinishedDir(dir) // another process was faster
		default:
			RemoveUnfinishedDir(dir)
			return err
		}
	}
}

const newSuffix = ".skerry-new"

// RemoveUnfinishedDir removes what a killed MakeOwnedDir left.
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

func markDir(dir string) error {
	err := os.Symlink("made by skerry", filepath.Join(dir, Mark))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// RemoveOwnedDir removes an empty directory that MakeOwnedDir made.
//
// Invariant: the last user removes the directory. A user that finds it without its mark leaves the removal to the process
// that took the mark. If that process cannot remove the directory, because another one uses it again, it restores the mark
// and looks again: the other user may have ended while the mark was missing.
func RemoveOwnedDir(dir string) {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != Mark {
			return
		}
		if os.Remove(filepath.Join(dir, Mark)) != nil {
			return
		}
		err = os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		if markDir(dir) != nil || !errors.Is(err, unix.ENOTEMPTY) {
			return
		}
	}
}

// RemoveFiles removes the lab's directory. The files that identify the lab go last, so that a failed call can be repeated.
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

// RemoveContents removes a directory's content, the named entries last.
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

// RemovePath removes a file or an empty directory. A missing one is not an error.
func RemovePath(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveIfEmpty removes a state directory without labs.
func (s Store) RemoveIfEmpty(ctx context.Context) error {
	lock, err := s.LockExisting(ctx)
	if lock != nil {
		s.Release(lock)
	}
	return err
}
