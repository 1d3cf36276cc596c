package store

import (
	"context"
	"errors"
	"fmt"

	"skerry/systems/metadata"
)

// errLockTimeout is why a command no longer waits.
var errLockTimeout = errors.New("a transaction between servers holds it for too long")

// startPatience returns a context that ends when a command has waited for too long. It begins
// with the first wait.
func (s *Store) startPatience(ctx context.Context) (begin func() context.Context, end func()) {
	var waiting context.Context
	cancel := func() {}
	begin = func() context.Context {
		if waiting == nil {
			waiting, cancel = context.WithTimeoutCause(ctx, s.Patience, errLockTimeout)
		}
		return waiting
	}
	return begin, func() { cancel() }
}

// awaitUnlock waits until the transactions are others than h.
func (s *Store) awaitUnlock(ctx context.Context, h *lockTable, barred error) error {
	select {
	case <-h.changed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: nothing was changed: %w: %w", metadata.ErrUnavailable, barred, context.Cause(ctx))
	}
}

// mayWait tells whether a command that meets a transaction may wait for it. One of another
// transaction may where that is older, or holds nothing yet: so no two wait for each other
// (wait-die, Rosenkrantz, Stearns and Lewis, 1978).
func mayWait(c metadata.Command, barred *metadata.HeldError) bool {
	if c.Op != metadata.Transact {
		return true
	}
	step, err := metadata.ParseStep(c.Data)
	return err == nil && (step.First || step.Txn < barred.Txn)
}

// read answers from the tree as it was at one moment: not while a transaction is half done
// here, nor where another server may have decided it.
func (s *Store) read(ctx context.Context, c metadata.Command) metadata.Result {
	patience, end := s.startPatience(ctx)
	defer end()
	for {
		h := s.state.locks.Load()
		if len(h.txns) > 0 {
			err := h.checkRead(c)
			if h.applying && err == nil {
				err = h.txns[0].heldError(c.Path)
			}
			if err != nil {
				if err := s.awaitUnlock(patience(), h, err); err != nil {
					return metadata.Result{Err: err}
				}
				continue
			}
		}
		r := s.Tree().Do(c)
		if s.state.locks.Load() == h || c.Op == metadata.Find {
			return r
		}
	}
}

// Transactions are those that are under way; changed is closed when they are others.
func (s *Store) Transactions() (list []metadata.Txn, changed <-chan struct{}) {
	h := s.state.locks.Load()
	for _, p := range h.txns {
		list = append(list, p.Txn)
	}
	return append(list, h.watches...), h.changed
}
