package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"skerry/internal/base/advice"
	"skerry/internal/base/flock"
	"skerry/internal/machine"
	"skerry/internal/machine/journal"
)

// Open implements machine.Machine. The nodes of a rootless part are opened from within its
// user namespace.
func (m *Machine) Open(_ context.Context, lab string) (machine.Part, error) {
	p := &part{machine: m, place: m.store.Lab(lab), journal: &journal.Journal{}}
	var err error
	if p.record, err = readRecord(p.place); errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(lab)
	}
	if err == nil && p.record.Version != recordVersion {
		err = fmt.Errorf("lab %s was made by another version of skerry", lab)
	}
	if err != nil {
		return nil, err
	}
	return p, p.openNodes()
}

func notFound(lab string) error {
	if lab == "" {
		return machine.ErrNotFound
	}
	return fmt.Errorf("%w: %s", machine.ErrNotFound, lab)
}

// Remove implements machine.Machine.
func (m *Machine) Remove(ctx context.Context, lab string) error {
	place := m.store.Lab(lab)
	lock, err := seize(ctx, place)
	r := inspect(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notFound(lab)
	case errors.Is(err, flock.ErrHeld):
		return r.inUse()
	case err != nil:
		return err
	}
	p := &part{machine: m, place: place, owner: lock, journal: &journal.Journal{}, record: record{Name: lab, ID: r.id}}
	if r.record != nil {
		p.record = *r.record
	}
	if err := p.Down(ctx); err != nil {
		return errors.Join(err, p.Close())
	}
	return nil
}

func (r remains) inUse() error {
	err := fmt.Errorf("%w: %s", machine.ErrInUse, r.place.Name)
	if r.plan == nil {
		return err
	}
	return advice.With(err, "stop process %d first", r.plan.Owner.PID)
}
