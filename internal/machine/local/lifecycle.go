package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/rootless"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
)

func (p *part) Down(ctx context.Context) error {
	p.ending.Lock()
	defer p.ending.Unlock()
	if p.gone {
		return nil
	}
	if err := p.acquire(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process removed it
		}
		return err
	}
	// Removal continues after cancellation: half a lab is useless.
	ctx = context.WithoutCancel(ctx)
	errs := []error{journal.RemovePath(p.place.Path(journal.RecordFile))}
	if p.tunnels != nil {
		errs = append(errs, p.tunnels.Close())
	}
	errs = append(errs, p.underlay.close())
	for _, n := range p.nodes {
		errs = append(errs, n.Close())
	}
	if p.engine.Engine != nil {
		errs = append(errs, p.engine.Close())
	}
	errs = append(errs, p.journal.Close())
	errs = append(errs, p.clearRemains(ctx))
	return errors.Join(errs...)
}

func (p *part) acquire(ctx context.Context) error {
	if os.Getenv(host.LabVariable) == p.record.ID {
		return advice.With(fmt.Errorf("end lab %s from one of its own nodes", p.record.Name), "leave the node's shell first")
	}
	if owns, err := p.isOwner(); owns || err != nil {
		return err
	}
	lock, err := journal.LockDir(ctx, p.place.Dir(), true)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner = lock
	return nil
}

// isOwner reports whether this process holds the part's lock. It returns ErrInUse if the part belongs to another process.
func (p *part) isOwner() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner == nil && p.record.Owned {
		return false, p.inUse()
	}
	return p.owner != nil, nil
}

// clearRemains removes everything and releases the lab's name.
func (p *part) clearRemains(ctx context.Context) error {
	r := inspect(p.place)
	r.record = &p.record // it may not have been written
	if err := r.clear(ctx); err != nil {
		return err
	}
	p.gone = true
	p.mu.Lock()
	err := p.owner.Close()
	p.owner = nil
	p.mu.Unlock()
	return errors.Join(err, p.place.Store.RemoveIfEmpty(ctx))
}

func (p *part) Commit(ctx context.Context, lab json.RawMessage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rootless.Inside() && !p.record.Owned {
		if err := p.startHolder(); err != nil {
			return err
		}
	}
	p.record.Lab = lab
	err := journal.WriteJSON(p.place.Path(journal.RecordFile), p.record)
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

// startHolder starts a process that keeps the user namespace alive after this process ends.
func (p *part) startHolder() error {
	process, err := rootless.StartHolder(p.machine.Exe, []string{"agent", "hold"}, host.LabVariable+"="+p.record.ID)
	if err != nil {
		return err
	}
	p.record.Holder = &journal.Process{Process: process, Name: journal.Holder}
	return p.journal.AppendProcess(process, journal.Holder)
}

func (p *part) SetNote(_ context.Context, note json.RawMessage) error {
	return journal.WriteJSON(p.place.Path(journal.NoteFile), note)
}

func (p *part) Note(context.Context) (json.RawMessage, error) {
	var note json.RawMessage
	err := journal.ReadJSON(p.place.Path(journal.NoteFile), &note)
	return note, err
}

// Lock also excludes other callers in this process.
func (p *part) Lock(ctx context.Context) error {
	if owns, err := p.isOwner(); owns || err != nil {
		return err
	}
	lock, err := journal.LockDir(ctx, p.place.Dir(), true)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.borrowed = lock
	return nil
}

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

func (p *part) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := []error{p.journal.Close()}
	if p.underlay != nil && p.underlay.held != nil {
		errs = append(errs, p.underlay.held.close())
		p.underlay.held = nil
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
