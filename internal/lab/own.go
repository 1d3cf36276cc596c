package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"skerry/internal/advice"
)

// own makes a directory that is skerry's, and marks it so that disown removes it. It is
// marked before it gets its name: a command that is killed between leaves what sweepNew
// knows.
func own(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(dir); err == nil {
			return trusted(dir)
		}
		err := os.Mkdir(dir+newSuffix, 0o755)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Symlink("made by skerry", filepath.Join(dir+newSuffix, madeFile))
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Rename(dir+newSuffix, dir)
		}
		switch {
		case err == nil:
			return trusted(dir) // somebody else may have put there what got the name
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTEMPTY):
			// Another command was faster.
		default:
			sweepNew(dir)
			return err
		}
	}
}

// newSuffix is that of a directory which own is making.
const newSuffix = ".skerry-new"

// sweepNew removes what own was making when it was killed.
func sweepNew(dir string) {
	_ = os.Remove(filepath.Join(dir+newSuffix, madeFile)) // neither may be there
	_ = unix.Rmdir(dir + newSuffix)
}

// trusted refuses a directory that somebody else put where anyone may.
func trusted(dir string) error {
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

// disown removes a directory that own made and in which nothing is left.
func disown(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != madeFile {
		return
	}
	if os.Remove(filepath.Join(dir, madeFile)) == nil {
		_ = os.Remove(dir) // somebody may have put something there meanwhile
	}
}
