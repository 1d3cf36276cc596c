package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"skerry/internal/base/flock"
	"skerry/internal/machine/statedir"
)

// Sweep implements machine.Machine.
func (m *Machine) Sweep(ctx context.Context) ([]string, error) {
	swept, err := m.sweep(ctx)
	return append(swept, sweepData(m.Data)...), err
}

func (m *Machine) sweep(ctx context.Context) (swept []string, err error) {
	statedir.SweepNew(m.store.Dir())
	lock, err := m.store.LockExisting(ctx)
	if lock == nil {
		return nil, err
	}
	defer m.store.Release(lock)
	names, err := m.store.Names()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		p := m.store.Lab(name)
		owner, err := seize(ctx, p)
		if errors.Is(err, flock.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if r := inspect(p); !r.alive() {
			err := r.doubt()
			if err == nil {
				err = r.clear(ctx)
			}
			if err == nil {
				swept = append(swept, name)
			}
			errs = append(errs, err)
		}
		errs = append(errs, owner.Close())
	}
	return swept, errors.Join(errs...)
}

// sweepData removes the data directories of labs whose state directory is gone, as one in
// a memory file system is after the machine's restart.
func sweepData(dir string) (swept []string) {
	if statedir.Trusted(dir) != nil {
		return nil
	}
	statedir.SweepNew(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		lab, err := os.Readlink(filepath.Join(path, statedir.Mark))
		if err != nil || !e.IsDir() {
			continue
		}
		id, err := os.Readlink(filepath.Join(lab, statedir.ID))
		if err == nil && id == e.Name() {
			continue // its lab's journal is there
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // not ours to see
		}
		if running, err := tagged(e.Name()); err != nil || len(running) > 0 {
			continue // its state is elsewhere, or was lost while it was up
		}
		if removeMarked(path, lab) == nil {
			swept = append(swept, e.Name())
		}
	}
	return swept
}
