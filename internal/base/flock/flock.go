// Package flock locks files and folders against other processes, by flock(2).
//
// Such a lock belongs to an open file, and closing the file gives the lock back only once nobody has a copy of the
// descriptor. In a process that starts programs somebody may have one:
//
//  1. A goroutine starts a program. Until the child executes it, the child has copies of all descriptors.
//  2. Another goroutine closes the file that it had locked, opens it again, and locks it.
//  3. The child has had no processor since 1. Its copy holds the lock, and 2 is told that somebody else has it.
//
// Close therefore unlocks before it closes, which frees the lock whatever copies there are.
package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned for a lock that somebody holds.
var ErrHeld = errors.New("locked")

// Lock is a lock that is held.
type Lock struct{ file *os.File }

// Acquire locks an open file or folder, which the lock owns from then on, without waiting. The file stays open
// where it cannot be locked.
func Acquire(f *os.File) (*Lock, error) {
	if err := tryLock(f, unix.LOCK_EX); err != nil {
		return nil, err
	}
	return &Lock{f}, nil
}

// Close gives the lock back and closes its file.
func (l *Lock) Close() error {
	return errors.Join(unlock(l.file), l.file.Close())
}

// IsHeld tells whether somebody holds the lock of a file or folder.
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
