// Package flock locks files and directories against other processes with flock(2).
//
// Such a lock belongs to the open file description. Closing the file releases the lock only when no copy of the
// descriptor is left. A process that starts programs may have copies:
//
//  1. A goroutine starts a program. Until the child calls execve, it has copies of all descriptors.
//  2. Another goroutine closes its locked file, opens it again, and tries to lock it.
//  3. The child has not run since step 1. Its copy still holds the lock, and step 2 fails with ErrHeld.
//
// Therefore Close unlocks before it closes the file, which releases the lock regardless of copies.
package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned for a lock that another holder has.
var ErrHeld = errors.New("locked")

// Lock is a held lock.
type Lock struct{ file *os.File }

// Acquire locks an open file or directory without waiting. On success the Lock owns the file. On failure the file stays
// open.
func Acquire(f *os.File) (*Lock, error) {
	if err := tryLock(f, unix.LOCK_EX); err != nil {
		return nil, err
	}
	return &Lock{f}, nil
}

// Close releases the lock and closes its file.
func (l *Lock) Close() error {
	return errors.Join(unlock(l.file), l.file.Close())
}

// IsHeld reports whether the file or directory is locked.
func IsHeld(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := tryLock(f, unix.LOCK_SH); err != nil {
		return errors.Is(err, ErrHeld), nil
	}
	return false, unlock(f)
}

func tryLock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrHeld
	case err != nil:
		return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return nil
}

func unlock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		return &os.PathError{Op: "unlock", Path: f.Name(), Err: err}
	}
	return nil
}
