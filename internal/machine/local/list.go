package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"skerry/internal/base/flock"
	"skerry/internal/machine"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/statedir"
)

// List implements machine.Machine.
func (m *Machine) List(ctx context.Context) ([]machine.Found, error) {
	names, err := m.store.Names()
	if err != nil {
		return nil, err
	}
	found := make([]machine.Found, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := find(m.store.Lab(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("look at lab %s: %w", name, err)
		}
		found = append(found, f)
	}
	return found, nil
}

func find(p statedir.Place) (machine.Found, error) {
	locked, err := flock.IsHeld(p.Dir())
	if err != nil {
		return machine.Found{}, err
	}
	r := inspect(p)
	f := machine.Found{Name: p.Name, State: machine.Dead, Problem: "left by a command that ended early"}
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
		r.tell(&f)
	}
	return f, nil
}

// tell adds what is known of a part that is whole.
func (r remains) tell(f *machine.Found) {
	f.Facts = r.record.facts()
	if statedir.ReadJSON(r.place.File(statedir.Note), &f.Note) != nil {
		f.Note = nil // without it the rest is still of use
	}
	for _, p := range r.processes {
		if p.Name != journal.Emulator && p.Name != journal.Holder && r.sameBoot && p.Alive() {
			f.Processes++
		}
	}
}
