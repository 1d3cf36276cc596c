package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tries is how often something is made that the last lab of another command may just be
// taking away.
const tries = 100

// lock waits for the exclusive use of the store.
func (s store) lock(ctx context.Context) (*os.File, error) {
	var err error
	for range tries {
		if err = own(s.dir); err != nil {
			return nil, fmt.Errorf("make state directory: %w", err)
		}
		if err = os.Mkdir(s.labs(), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			var lock *os.File
			if lock, err = lockDir(ctx, s.labs(), true); err == nil {
				return lock, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, fmt.Errorf("make state directory: %w", err)
}

// lockExisting is lock for a store that may not be there: nil then.
func (s store) lockExisting(ctx context.Context) (*os.File, error) {
	dir, err := lockDir(ctx, s.labs(), true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// release gives the lock of the store back and removes what is empty.
func (s store) release(lock *os.File) {
	if os.Remove(s.labs()) == nil {
		disown(s.dir)
	}
	lock.Close()
}

// errLocked is returned for a lock that somebody holds.
var errLocked = errors.New("locked")

// moment is how long a lock may be held by somebody who is not the lab's owner: a command
// that changes links, or a process that the owner was starting when it was killed and
// that still has all its files.
const moment = 2 * time.Second

// seize locks the lab's directory, for ending the lab; errLocked when its owner lives.
func (p place) seize(ctx context.Context) (*os.File, error) {
	lock, err := lockDir(ctx, p.dir(), false)
	if !errors.Is(err, errLocked) {
		return lock, err
	}
	if r := inspect(p); r.plan == nil || r.plan.Owner.Alive() {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	lock, err = lockDir(within, p.dir(), true)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("%s: %w", p.dir(), errLocked)
	}
	return lock, err
}

// patience is how often a lock is tried that somebody holds.
const patience = 10 * time.Millisecond

// lockDir locks a directory for as long as the file returned is open. Without wait, a
// lock that is taken gives errLocked.
func lockDir(ctx context.Context, path string, wait bool) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			dir.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		if !wait {
			dir.Close()
			return nil, fmt.Errorf("%s: %w", path, errLocked)
		}
		select {
		case <-ctx.Done():
			dir.Close()
			return nil, fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-time.After(patience):
		}
	}
	// It may have been removed, and made anew, while the lock was waited for.
	var have, there unix.Stat_t
	err = unix.Fstat(int(dir.Fd()), &have)
	if err == nil {
		err = unix.Stat(path, &there)
	}
	if err == nil && have.Ino != there.Ino {
		err = fs.ErrNotExist
	}
	if err != nil {
		dir.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return dir, nil
}
