package lab

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Sweep clears the labs whose owner died, and returns their names. It needs no
// room on the disk and touches nothing that no lab made.
func Sweep(ctx context.Context, stateDir string) ([]string, error) {
	s, err := openStore(stateDir)
	if err != nil {
		return nil, err
	}
	swept, err := s.sweep(ctx)
	return append(swept, sweepData(DefaultDataDir())...), err
}

func (s store) sweep(ctx context.Context) (swept []string, err error) {
	sweepNew(s.dir)
	lock, err := s.lockExisting(ctx)
	if lock == nil {
		return nil, err
	}
	defer s.release(lock)
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		p := s.lab(name)
		owner, err := p.seize(ctx)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
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
	if trusted(dir) != nil {
		return nil
	}
	sweepNew(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		lab, err := os.Readlink(filepath.Join(path, madeFile))
		if err != nil || !e.IsDir() {
			continue
		}
		id, err := os.Readlink(filepath.Join(lab, idFile))
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
