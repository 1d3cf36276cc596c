package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/base/flock"
	"skerry/internal/machine/statedir"
)

// moment is how long a lock may be held by somebody who is not the lab's owner: a command
// that changes links, or a process that the owner was starting when it was killed and
// that still has all its files.
const moment = 2 * time.Second

// seize locks a lab's directory, for ending the lab; flock.ErrHeld when its owner lives.
func seize(ctx context.Context, p statedir.Place) (*flock.Lock, error) {
	lock, err := statedir.LockDir(ctx, p.Dir(), false)
	if !errors.Is(err, flock.ErrHeld) {
		return lock, err
	}
	if r := inspect(p); r.plan == nil || r.plan.Owner.Alive() {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	lock, err = statedir.LockDir(within, p.Dir(), true)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("%s: %w", p.Dir(), flock.ErrHeld)
	}
	return lock, err
}
