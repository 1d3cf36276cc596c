package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/flock"
)

// LockedDir is a directory that this process has locked. The kernel releases the lock when the process ends, for any
// reason. A process writes a record there before it creates something that must be removed. SweepLockedDirs cleans up after
// processes that have died.
//
// Invariant: the directory of a living process is locked. NewLockedDir creates and locks a directory while it holds the lock of
// the root, and SweepLockedDirs tries the lock of a directory only while it holds the lock of the root.
type LockedDir struct {
	Path string
	lock *flock.Lock
}

// NewLockedDir creates a locked directory below root, and root if it is missing.
func NewLockedDir(ctx context.Context, root, name string) (*LockedDir, error) {
	all, err := lockOwned(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", root, err)
	}
	defer releaseOwned(all, root)
	c := &LockedDir{Path: filepath.Join(root, name)}
	if err := os.Mkdir(c.Path, 0o700); err != nil {
		return nil, err
	}
	if c.lock, err = LockDir(ctx, c.Path, false); err != nil {
		return nil, errors.Join(err, os.Remove(c.Path))
	}
	return c, nil
}

// Leave releases the lock and leaves the directory to SweepLockedDirs.
func (c *LockedDir) Leave() error { return c.lock.Close() }

// Remove removes the directory.
func (c *LockedDir) Remove(ctx context.Context) error {
	err := os.RemoveAll(c.Path)
	root := filepath.Dir(c.Path)
	all, lockErr := LockDir(ctx, root, true)
	switch {
	case lockErr == nil:
		releaseOwned(all, root)
	case errors.Is(lockErr, fs.ErrNotExist): // another process has removed the empty root
		lockErr = nil
	}
	return errors.Join(err, lockErr, c.lock.Close())
}

// WriteRecord returns when the record is on the disk, in a LockedDir.
func WriteRecord(dir, name string, v any) error {
	err := atomicfile.Write(filepath.Join(dir, name), func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.SyncDir(filepath.Dir(dir)), atomicfile.SyncDir(filepath.Dir(filepath.Dir(dir))))
}

// ReadRecord returns false if there is no record.
func (c *LockedDir) ReadRecord(name string, v any) (bool, error) {
	path := filepath.Join(c.Path, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

// SweepLockedDirs calls clean for each directory below root whose process has died, and returns what clean has removed. A
// directory whose clean fails stays. A root of another user is refused: its records can contain commands.
func SweepLockedDirs(ctx context.Context, root string, clean func(c *LockedDir) (string, error)) (removed []string, err error) {
	var here unix.Stat_t
	entries, err := os.ReadDir(root)
	if err == nil {
		err = unix.Lstat(root, &here)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && int(here.Uid) != os.Geteuid() {
		err = advice.With(fmt.Errorf("%s belongs to user %d", root, here.Uid), "remove it")
	}
	if err != nil {
		return nil, fmt.Errorf("find remains of killed runs: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if ctx.Err() != nil {
			break
		}
		what, err := sweepLockedDir(ctx, filepath.Join(root, e.Name()), clean)
		if what != "" {
			removed = append(removed, what)
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

func sweepLockedDir(ctx context.Context, dir string, clean func(c *LockedDir) (string, error)) (string, error) {
	c, err := openLockedDir(ctx, dir)
	if c == nil {
		return "", err
	}
	what, err := clean(c)
	if err != nil {
		return "", errors.Join(err, c.Leave())
	}
	return what, c.Remove(context.WithoutCancel(ctx))
}

// openLockedDir returns nil if the process of the directory is alive or another sweep has removed the directory.
func openLockedDir(ctx context.Context, dir string) (*LockedDir, error) {
	root := filepath.Dir(dir)
	all, err := LockDir(ctx, root, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", root, err)
	}
	defer all.Close()
	lock, err := LockDir(ctx, dir, false)
	if errors.Is(err, flock.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return &LockedDir{dir, lock}, nil
}
