package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"skerry/internal/base/advice"
	"skerry/internal/machine/host"
	"skerry/internal/machine/statedir"
)

// Down implements machine.Part.
func (p *part) Down(ctx context.Context) error {
	p.ending.Lock()
	defer p.ending.Unlock()
	if p.gone {
		return nil
	}
	if err := p.take(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody else took it down
		}
		return err
	}
	// Begun is finished: half a lab is of no use to anybody.
	ctx = context.WithoutCancel(ctx)
	errs := []error{statedir.Remove(p.place.File(statedir.Record))}
	if p.tunnels != nil {
		errs = append(errs, p.tunnels.Close())
	}
	errs = append(errs, p.between.close())
	for _, n := range p.nodes {
		errs = append(errs, n.Close())
	}
	if p.engine.Engine != nil {
		errs = append(errs, p.engine.Close())
	}
	errs = append(errs, p.journal.Close())
	errs = append(errs, p.finish(ctx))
	return errors.Join(errs...)
}

// take makes this process the part's owner.
func (p *part) take(ctx context.Context) error {
	if os.Getenv(host.LabVariable) == p.record.ID {
		return advice.With(fmt.Errorf("end lab %s from one of its own nodes", p.record.Name), "leave the node's shell first")
	}
	if owns, err := p.owns(); owns || err != nil {
		return err
	}
	lock, err := statedir.LockDir(ctx, p.place.Dir(), true)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner = lock
	return nil
}

// owns tells whether this process has the part's lock; ErrInUse where that belongs to another
// for as long as the part is up.
func (p *part) owns() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner == nil && p.record.Owned {
		return false, p.inUse()
	}
	return p.owner != nil, nil
}

// finish clears what is left and gives the lab's name back.
func (p *part) finish(ctx context.Context) error {
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
	return errors.Join(err, p.place.Store.Tidy(ctx))
}
