package statedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// RemoveFiles removes the lab's directory, what identifies the lab last: should it fail
// on the way, the next try knows what it is about.
func (p Place) RemoveFiles() error {
	err := RemoveKeeping(p.Dir(), Journal, ID)
	if err == nil {
		err = Remove(p.Dir())
	}
	if err != nil {
		return fmt.Errorf("remove directory of lab: %w", err)
	}
	return nil
}

// RemoveKeeping removes what is in a directory, and those named after the rest.
func RemoveKeeping(dir string, last ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !slices.Contains(last, e.Name()) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range last {
		if err := Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a file or an empty directory that may be gone.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Tidy removes the state directory when no lab is left in it.
func (s Store) Tidy(ctx context.Context) error {
	lock, err := s.LockExisting(ctx)
	if lock != nil {
		s.Release(lock)
	}
	return err
}
