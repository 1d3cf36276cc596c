package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/flock"
	"skerry/internal/base/linger"
)

// MakeAttempts bounds the attempts to make a directory that another command may be removing.
const MakeAttempts = 100

// Lock waits for exclusive use of the store.
func (s Store) Lock(ctx context.Context) (*flock.Lock, error) {
	var err error
	for range MakeAttempts {
		if err = MakeOwnedDir(s.dir); err != nil {
			return nil, fmt.Errorf("make state directory: %w", err)
		}
		if err = os.Mkdir(s.labs(), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			var lock *flock.Lock
			if lock, err = LockDir(ctx, s.labs(), true); err == nil {
				return lock, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, fmt.Errorf("make state directory: %w", err)
}

// LockExisting is Lock, but returns nil for a missing store.
func (s Store) LockExisting(ctx context.Context) (*flock.Lock, error) {
	dir, err := LockDir(ctx, s.labs(), true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// Release unlocks the store and removes it if it is empty.
func (s Store) Release(lock *flock.Lock) {
	if os.Remove(s.labs()) == nil {
		RemoveOwnedDir(s.dir)
	}
	lock.Close()
}

const lockPoll = 10 * time.Millisecond

// LockDir locks a directory. Without wait, it returns flock.ErrHeld if the lock is taken.
func LockDir(ctx context.Context, path string, wait bool) (*flock.Lock, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var lock *flock.Lock
	for {
		if lock, err = flock.Acquire(dir); err == nil {
			break
		}
		if !errors.Is(err, flock.ErrHeld) {
			dir.Close()
			return nil, err
		}
		if !wait {
			dir.Close()
			return nil, fmt.Errorf("%s: %w", path, flock.ErrHeld)
		}
		if err := linger.For(ctx, lockPoll); err != nil {
			dir.Close()
			return nil, fmt.Errorf("wait for %s: %w", path, err)
		}
	}
	// While this process waited, the directory may have been replaced.
	var have, there unix.Stat_t
	err = unix.Fstat(int(dir.Fd()), &have)
	if err == nil {
		err = unix.Stat(path, &there)
	}
	if err == nil && have.Ino != there.Ino {
		err = fs.ErrNotExist
	}
	if err != nil {
		lock.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return lock, nil
}
