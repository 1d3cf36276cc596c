package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
)

// Own makes a directory that is skerry's, and marks it so that Disown removes it. It is
// marked before it gets its name: a command that is killed between leaves what SweepNew
// knows.
func Own(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(dir); err == nil {
			return Trusted(dir)
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
			return Trusted(dir) // somebody else may have put there what got the name
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTEMPTY):
			// Another command was faster.
		default:
			SweepNew(dir)
			return err
		}
	}
}

// newSuffix is that of a directory which Own is making.
const newSuffix = ".skerry-new"

// SweepNew removes what Own was making when it was killed.
func SweepNew(dir string) {
	_ = os.Remove(filepath.Join(dir+newSuffix, Mark)) // neither may be there
	_ = unix.Rmdir(dir + newSuffix)
}

// Trusted refuses a directory that somebody else put where anyone may.
func Trusted(dir string) error {
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

// Disown removes a directory that Own made and in which nothing is left.
func Disown(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != Mark {
		return
	}
	if os.Remove(filepath.Join(dir, Mark)) == nil {
		_ = os.Remove(dir) // somebody may have put something there meanwhile
	}
}
