package multihost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/machine/fleet"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/transport"
)

// RemoteLab is a lab that stays up on other machines, stored for later commands:
//
//	STATE/elsewhere/NAME.json
//
// The file is written before the lab is created and removed after it, so that every lab is known here.
type RemoteLab struct {
	Name     string         `json:"name"`
	Machines inventory.File `json:"machines"`
	// At maps nodes to machines.
	At map[string]string `json:"at"`
}

// Connect returns the lab's fleet, and a function that disconnects it.
func (s RemoteLab) Connect(ctx context.Context, o transport.Options) (*fleet.Fleet, func() error, error) {
	list, err := s.Machines.Expand(ctx)
	if err != nil {
		return nil, nil, err
	}
	used := map[string]bool{}
	for _, name := range s.At {
		used[name] = true
	}
	m := New(slices.DeleteFunc(list, func(x inventory.Entry) bool { return !used[x.Name] }), o)
	f, err := m.existingFleet(ctx, s.At)
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return f, m.Close, nil
}

// LabStore stores the remote labs of a state directory.
type LabStore struct{ dir string }

// OpenLabStore returns the store of a state directory, "" for the default.
func OpenLabStore(stateDir string) LabStore {
	return LabStore{filepath.Join(cmp.Or(stateDir, journal.DefaultStateDir()), "elsewhere")}
}

func (m LabStore) path(name string) string { return filepath.Join(m.dir, name+".json") }

func (m LabStore) Save(s RemoteLab) error {
	err := os.MkdirAll(m.dir, 0o755)
	if err == nil {
		err = journal.WriteJSON(m.path(s.Name), s)
	}
	if err != nil {
		return fmt.Errorf("store lab %s: %w", s.Name, err)
	}
	return nil
}

// Remove removes a lab; a missing lab is not an error.
func (m LabStore) Remove(name string) error {
	if err := os.Remove(m.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stored lab %s: %w", name, err)
	}
	_ = os.Remove(m.dir) // fails if other labs are stored
	return nil
}

// List returns all labs, sorted by name.
func (m LabStore) List() ([]RemoteLab, error) {
	paths, err := filepath.Glob(m.path("*"))
	if err != nil {
		return nil, err
	}
	var all []RemoteLab
	for _, path := range paths {
		var s RemoteLab
		if err := journal.ReadJSON(path, &s); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b RemoteLab) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
