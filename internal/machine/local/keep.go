package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/rootless"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/statedir"
)

// Keep implements machine.Part.
func (p *part) Keep(ctx context.Context, lab json.RawMessage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rootless.Inside() && !p.record.Owned {
		if err := p.hold(); err != nil {
			return err
		}
	}
	p.record.Lab = lab
	err := statedir.WriteJSON(p.place.File(statedir.Record), p.record)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || p.record.Owned {
		return err
	}
	err = p.owner.Close()
	p.owner = nil
	return err
}

// hold starts a process that keeps a user namespace, with all that is in it, after this
// one has ended.
func (p *part) hold() error {
	process, err := rootless.StartHolder(p.machine.Exe, []string{"agent", "hold"}, host.LabVariable+"="+p.record.ID)
	if err != nil {
		return err
	}
	p.record.Holder = &journal.Process{Process: process, Name: journal.Holder}
	return p.journal.Began(process, journal.Holder)
}

// SetNote implements machine.Part.
func (p *part) SetNote(_ context.Context, note json.RawMessage) error {
	return statedir.WriteJSON(p.place.File(statedir.Note), note)
}

// Note implements machine.Part.
func (p *part) Note(context.Context) (json.RawMessage, error) {
	var note json.RawMessage
	err := statedir.ReadJSON(p.place.File(statedir.Note), &note)
	return note, err
}

// Lock implements machine.Part. Those of one process wait for each other, too.
func (p *part) Lock(ctx context.Context) error {
	if owns, err := p.owns(); owns || err != nil {
		return err
	}
	lock, err := statedir.LockDir(ctx, p.place.Dir(), true)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.borrowed = lock
	return nil
}

// Unlock implements machine.Part.
func (p *part) Unlock() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.borrowed == nil {
		return nil
	}
	err := p.borrowed.Close()
	p.borrowed = nil
	return err
}

func (p *part) inUse() error {
	err := fmt.Errorf("%w: %s", machine.ErrInUse, p.record.Name)
	return advice.With(err, "stop process %d first", p.record.Owner.PID)
}

// Close implements machine.Part.
func (p *part) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := []error{p.journal.Close()}
	if p.between != nil && p.between.held != nil {
		errs = append(errs, p.between.held.close())
		p.between.held = nil
	}
	if p.engine.Detach != nil {
		errs = append(errs, p.engine.Detach())
	}
	if p.owner != nil {
		errs = append(errs, p.owner.Close())
		p.owner = nil
	}
	return errors.Join(errs...)
}
