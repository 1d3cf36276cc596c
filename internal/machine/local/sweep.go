package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skerry/internal/base/flock"
	"skerry/internal/machine"
	"skerry/internal/machine/journal"
)

func (m *Machine) Sweep(ctx context.Context) ([]string, error) {
	swept, err := m.sweep(ctx)
	return append(swept, sweepData(m.Data)...), err
}

func (m *Machine) sweep(ctx context.Context) (swept []string, err error) {
	journal.RemoveUnfinishedDir(m.store.Dir())
	lock, err := m.store.LockExisting(ctx)
	if lock == nil {
		return nil, err
	}
	defer m.store.Release(lock)
	names, err := m.store.ListLabs()
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

// sweepData removes the data directories of labs whose state directory is gone, such as one in memory after a restart.
func sweepData(dir string) (swept []string) {
	if journal.CheckOwner(dir) != nil {
		return nil
	}
	journal.RemoveUnfinishedDir(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		lab, err := os.Readlink(filepath.Join(path, journal.Mark))
		if err != nil || !e.IsDir() {
			continue
		}
		id, err := os.Readlink(filepath.Join(lab, journal.IDFile))
		if err == nil && id == e.Name() {
			continue // its lab's journal is there
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // not ours to see
		}
		if running, err := processesWithTag(e.Name()); err != nil || len(running) > 0 {
			continue // its state is elsewhere, or was lost while it was up
		}
		if removeMarked(path, lab) == nil {
			swept = append(swept, e.Name())
		}
	}
	return swept
}

// moment is how long a process other than the owner may hold a lock: a command that changes links, or a process that the
// owner had just forked when it was killed and that has not closed its files yet.
const moment = 2 * time.Second

// seize locks a lab's directory in order to end the lab. It returns flock.ErrHeld if the owner lives.
func seize(ctx context.Context, p journal.LabDir) (*flock.Lock, error) {
	lock, err := journal.LockDir(ctx, p.Dir(), false)
	if !errors.Is(err, flock.ErrHeld) {
		return lock, err
	}
	if r := inspect(p); r.plan == nil || r.plan.Owner.Alive() {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	lock, err = journal.LockDir(within, p.Dir(), true)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("%s: %w", p.Dir(), flock.ErrHeld)
	}
	return lock, err
}

func (m *Machine) List(ctx context.Context) ([]machine.PartStatus, error) {
	names, err := m.store.ListLabs()
	if err != nil {
		return nil, err
	}
	found := make([]machine.PartStatus, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := find(m.store.Lab(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("inspect lab %s: %w", name, err)
		}
		found = append(found, f)
	}
	return found, nil
}

func find(p journal.LabDir) (machine.PartStatus, error) {
	locked, err := flock.IsHeld(p.Dir())
	if err != nil {
		return machine.PartStatus{}, err
	}
	r := inspect(p)
	f := machine.PartStatus{Name: p.Name, State: machine.Dead, Problem: "left by a command that ended early"}
	switch {
	case r.record == nil && !locked:
		if err := r.doubt(); err != nil {
			f.Problem = r.unread.Error()
		}
		return f, nil
	case locked && (r.record == nil || r.record.Owned):
		f.State, f.Problem = machine.Owned, ""
		if r.plan != nil {
			f.Owner = r.plan.Owner.PID
		}
	case r.alive():
		f.State, f.Problem = machine.Up, ""
		if lack := r.damage(); lack != "" {
			f.State, f.Problem = machine.Damaged, lack
		}
	}
	if r.record != nil {
		r.status(&f)
	}
	return f, nil
}

// status adds the state of a complete part.
func (r remains) status(f *machine.PartStatus) {
	f.Facts = r.record.facts()
	if journal.ReadJSON(r.place.Path(journal.NoteFile), &f.Note) != nil {
		f.Note = nil // without it the rest is still of use
	}
	for _, p := range r.processes {
		if p.Name != journal.Emulator && p.Name != journal.Holder && r.sameBoot && p.Alive() {
			f.Processes++
		}
	}
}
