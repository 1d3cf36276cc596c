// Package whole writes files that are there as a whole or not at all: whoever reads one, also
// after a crash or on a full disk, finds the old content or the new.
package whole

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// File makes path hold exactly what write writes, readable by all, or leaves it as it was:
// the data go to a temporary file beside it, to the disk, and then by one rename in place.
func File(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable: what was created, renamed and removed.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
