package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"skerry/internal/advice"
	"skerry/internal/host"
)

// Down ends the lab: its processes, links, namespaces, control groups and
// directories. It does all it can whatever fails, and may be called again.
func (l *Lab) Down(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return nil
	}
	if err := l.take(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody else took it down
		}
		return err
	}
	// Begun is finished: half a lab is of no use to anybody.
	ctx = context.WithoutCancel(ctx)
	errs := []error{remove(l.place.file(stateFile))}
	errs = append(errs, l.closeService(), l.closeOverlay())
	if l.tunnels != nil {
		errs = append(errs, l.tunnels.Close())
	}
	for _, n := range l.nodes {
		errs = append(errs, n.Close())
	}
	if l.engine.Engine != nil {
		errs = append(errs, l.engine.Close())
	}
	errs = append(errs, l.journal.close())
	errs = append(errs, l.finish(ctx))
	return errors.Join(errs...)
}

// take makes this process the lab's owner.
func (l *Lab) take(ctx context.Context) (err error) {
	if os.Getenv(host.LabVariable) == l.state.ID {
		return advice.With(fmt.Errorf("end lab %s from one of its own nodes", l.state.Name), "leave the node's shell first")
	}
	if l.owner != nil {
		return nil
	}
	if l.state.Ephemeral {
		return l.inUse()
	}
	l.owner, err = lockDir(ctx, l.place.dir(), true)
	return err
}

func (l *Lab) inUse() error {
	return advice.With(fmt.Errorf("%w: %s", ErrInUse, l.state.Name), "stop process %d first", l.state.Owner.PID)
}

// finish clears what is left and gives the lab's name back.
func (l *Lab) finish(ctx context.Context) error {
	r := inspect(l.place)
	r.state = &l.state // it may not have been written
	if err := r.clear(ctx); err != nil {
		return err
	}
	err := errors.Join(l.owner.Close(), l.place.store.tidy(ctx))
	l.owner, l.gone = nil, true
	return err
}

// tidy removes the state directory when no lab is left in it.
func (s store) tidy(ctx context.Context) error {
	lock, err := s.lockExisting(ctx)
	if lock != nil {
		s.release(lock)
	}
	return err
}
