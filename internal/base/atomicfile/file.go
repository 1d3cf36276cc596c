// Package atomicfile writes files that are there as a whole or not at all: whoever reads one, also
// after a crash or on a full disk, finds the old content or the new.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File makes path hold exactly what write writes, readable by all, or leaves it as it was. It
// is on the disk when it returns.
func File(path string, write func(io.Writer) error) error { return Durable(path, 0o644, write) }

// Durable is File of another mode.
func Durable(path string, mode fs.FileMode, write func(io.Writer) error) error {
	err := Replace(path, mode, func(f *os.File) error { return errors.Join(write(f), f.Sync()) })
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Replace makes path hold exactly what write writes, or leaves it as it was: the data go to a
// temporary file beside it, and then by one rename in place. Nothing is forced to the disk.
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

// Link makes the symbolic link path point at target, in place of what is there.
func Link(path, target string) error {
	tmp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), os.Getpid()))
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was killed
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

// SyncDir makes the names in a directory durable: what was created, renamed and removed.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
