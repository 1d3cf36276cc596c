// Package atomicfile replaces files atomically. A reader finds the old content or the new content, even after a
// crash or on a full disk.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of path with what write writes, with mode 0644. An error leaves path unchanged.
// The new content is on the disk when Write returns.
func Write(path string, write func(io.Writer) error) error {
	err := Replace(path, 0o644, func(f *os.File) error { return errors.Join(write(f), f.Sync()) })
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Replace replaces the content of path with what write writes. An error leaves path unchanged.
// Replace writes a temporary file in the same directory and renames it. It does not sync.
func Replace(path string, mode fs.FileMode, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	err = errors.Join(write(f), f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// Symlink creates or replaces the symbolic link path, which then points at target.
func Symlink(path, target string) error {
	tmp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), os.Getpid()))
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed process
		return fmt.Errorf("linking %s: %w", path, err)
	}
	if err := os.Symlink(target, tmp); err != nil {
		return fmt.Errorf("linking %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(fmt.Errorf("linking %s: %w", path, err), os.Remove(tmp))
	}
	return nil
}

// SyncDir syncs a directory: it makes the creation, renaming and removal of its entries durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
