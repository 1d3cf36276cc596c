// Package local implements machine.Machine on this machine: a network namespace, a control group and a directory for each
// node, and links between them made by a link engine.
//
// A part writes everything to a journal before creating it, so that Sweep can remove exactly the leftovers of a killed
// process, a crash or a full disk. The machine's own network namespace gets no devices, addresses, routes or rules, except for a
// node that is the machine itself (whole.go). The kernel removes those with the lab's processes.
package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"skerry/internal/base/advice"
	"skerry/internal/base/flock"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/journal"
)

// Config configures a Machine.
type Config struct {
	// State is the state directory; default journal.DefaultStateDir.
	State string
	// Data is the directory for the nodes' directories, on a disk with space for databases; default journal.DefaultDataDir.
	Data string
	// Exe is the skerry program, from which agents are started.
	Exe string
	// Engines are the available engines in the order of preference; default emulator.Kinds.
	Engines []emulator.Kind
	// Log receives debug messages; default none.
	Log *slog.Logger
	// Progress, if set, is called while nodes and links are made, by one goroutine at a time.
	Progress func(stage string, done, total int)
}

// Machine implements machine.Machine on this machine.
type Machine struct {
	Config
	store journal.Store
}

var _ machine.Machine = (*Machine)(nil)

func New(c Config) (*Machine, error) {
	if c.State == "" {
		c.State = journal.DefaultStateDir()
	}
	if c.Data == "" {
		c.Data = journal.DefaultDataDir()
	}
	if c.Engines == nil {
		c.Engines = emulator.Kinds()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
	store, err := journal.OpenStore(c.State)
	if err != nil {
		return nil, err
	}
	return &Machine{c, store}, nil
}

func (m *Machine) Prepare(ctx context.Context, a machine.PartSpec) (machine.Part, error) {
	if a.Whole {
		if err := canBeWhole(); err != nil {
			return nil, err
		}
	}
	kind, why, err := emulator.Choose(a.Engine, m.Engines)
	if err != nil {
		return nil, err
	}
	p := &part{machine: m, place: m.store.Lab(a.Lab), ask: a}
	p.record = record{Version: recordVersion, Name: a.Lab, Owned: a.Owned, Engine: kind.Name(), Why: why}
	if err := p.claim(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// claim reserves the lab's name and writes its journal. A failed claim leaves nothing behind.
func (p *part) claim(ctx context.Context) error {
	store := p.place.Store
	lock, err := store.Lock(ctx)
	if err != nil {
		return err
	}
	defer store.Release(lock)
	if err := vacate(ctx, p.place); err != nil {
		return err
	}
	if p.ask.Whole {
		if err := p.alone(ctx); err != nil {
			return err
		}
	}
	if err := os.Mkdir(p.place.Dir(), 0o700); err != nil {
		return fmt.Errorf("create directory of lab: %w", err)
	}
	err = p.found(ctx)
	if err != nil {
		err = errors.Join(err, p.place.RemoveFiles())
		if p.owner != nil {
			p.owner.Close()
		}
	}
	return err
}

// vacate removes the remains of a lab with this name. It returns ErrExists if the lab is up.
func vacate(ctx context.Context, p journal.LabDir) error {
	lock, err := seize(ctx, p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, flock.ErrHeld):
		return advice.With(fmt.Errorf("%w: %s", machine.ErrExists, p.Name), "it belongs to a running command; choose another name")
	case err != nil:
		return err
	}
	defer lock.Close()
	r := inspect(p)
	if r.alive() {
		return advice.With(fmt.Errorf("%w: %s", machine.ErrExists, p.Name), "take it down with `skerry lab down %s`, or choose another name", p.Name)
	}
	if err := r.doubt(); err != nil {
		return err
	}
	return r.clear(ctx)
}

// found locks the lab's directory, assigns the part's ID and writes the plan.
func (p *part) found(ctx context.Context) (err error) {
	if p.owner, err = journal.LockDir(ctx, p.place.Dir(), true); err != nil {
		return err
	}
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		return fmt.Errorf("create ID of lab: %w", err)
	}
	r := &p.record
	r.ID = r.Name + "-" + hex.EncodeToString(random)
	if err := os.Symlink(r.ID, p.place.Path(journal.IDFile)); err != nil {
		return fmt.Errorf("store ID of lab: %w", err)
	}
	if r.Boot, err = procfs.BootID(); err != nil {
		return err
	}
	if r.Owner, err = procfs.Self(); err != nil {
		return err
	}
	data, err := filepath.Abs(p.machine.Data)
	if err != nil {
		return err
	}
	r.Data = filepath.Join(data, r.ID)
	p.journal, err = journal.Create(p.place.Path(journal.JournalFile), journal.Plan{
		ID: r.ID, Boot: r.Boot, Owner: r.Owner, Data: r.Data, MadeNames: ownsShownDir(), Whole: p.ask.Whole,
	})
	return err
}

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
