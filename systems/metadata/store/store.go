// Package store is a durable directory tree: changes become durable in a log, and are applied in log order. Reads see
// only durable changes.
package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/tree"
)

// Store answers commands from a State, and changes it through a Log.
type Store struct {
	state *State
	log   changelog.Log
	// shared is log if other machines append to it as well, otherwise nil.
	shared changelog.SharedLog
	now    func() time.Time
	// Name is the server's name among those that share a tree.
	Name string
	// Patience is the maximum wait for a transaction's locks. Default: 10 s.
	Patience time.Duration
}

// New returns a store on a state to which log applies its records.
func New(s *State, log changelog.Log) *Store {
	shared, _ := log.(changelog.SharedLog)
	return &Store{state: s, log: log, shared: shared, now: time.Now, Patience: 10 * time.Second}
}

func (s *Store) Tree() *tree.Tree { return s.state.Tree() }

// maxBatch is the approximate size at which a record accepts no further command.
const maxBatch = changelog.MaxRecord / 4

func (s *Store) Seen() metadata.Seen { return metadata.Seen{s.Name: s.state.applied.Load()} }

// Do runs commands one after another. Changes without a read between them become durable together.
func (s *Store) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results := make([]metadata.Result, 0, len(commands))
	stale := s.awaitCurrent(ctx, commands)
	for len(commands) > 0 {
		n, size := 0, 0
		for n < len(commands) && commands[n].Op.Changes() && size < maxBatch {
			size += len(commands[n].Data) + 2*metadata.MaxPath
			n++
		}
		switch {
		case n > 0:
			results = append(results, s.change(ctx, commands[:n])...)
		case stale != nil:
			results, n = append(results, metadata.Result{Err: stale}), 1
		default:
			results, n = append(results, s.read(ctx, commands[0])), 1
		}
		commands = commands[n:]
	}
	return results
}

// awaitCurrent makes reads linearizable on a shared log. It returns the error for the reads.
func (s *Store) awaitCurrent(ctx context.Context, commands []metadata.Command) error {
	reads := func(c metadata.Command) bool { return !c.Op.Changes() }
	if s.shared == nil || !slices.ContainsFunc(commands, reads) {
		return nil
	}
	if err := s.shared.Current(ctx); err != nil {
		return fmt.Errorf("%w: %w", metadata.ErrUnavailable, err)
	}
	return nil
}

func (s *Store) change(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results := make([]metadata.Result, 0, len(commands))
	patience, end := s.startPatience(ctx)
	defer end()
	for {
		h := s.state.locks.Load()
		done, barred := s.append(ctx, commands[len(results):])
		results = append(results, done...)
		if barred == nil {
			return results
		}
		err := error(barred)
		if mayWait(commands[len(results)], barred) {
			err = s.awaitUnlock(patience(), h, barred)
		}
		if err != nil {
			return append(results, slices.Repeat([]metadata.Result{{Err: err}}, len(commands)-len(results))...)
		}
	}
}

func (s *Store) append(ctx context.Context, commands []metadata.Command) (results []metadata.Result, barred *metadata.HeldError) {
	h := s.state.locks.Load()
	if commands[0].Op != metadata.Transact && commands[0].Identity == "" && errors.As(h.checkChange(commands[0]), &barred) {
		return nil, barred
	}
	// a lagging state must not refuse
	if len(commands) == 1 && s.shared == nil && !h.applying && commands[0].Op != metadata.Transact && commands[0].Identity == "" {
		if err := s.Tree().CheckChange(commands[0]); err != nil && s.state.locks.Load() == h {
			return []metadata.Result{{Err: err}}, nil
		}
	}
	commands = slices.Clone(commands)
	now, seen := s.now().UnixNano(), metadata.RequestFrom(ctx).Seen[s.Name]
	for i := range commands {
		if commands[i].Op != metadata.Touch || commands[i].Time == 0 {
			commands[i].Time = now
		}
		commands[i].Seen = seen
	}
	answer, err := s.log.Append(ctx, metadata.AppendBatch(nil, commands))
	results, ok := answer.([]metadata.Result)
	if err != nil || !ok || len(results) != len(commands) {
		return slices.Repeat([]metadata.Result{{Err: logError(err)}}, len(commands)), nil
	}
	for i, r := range results {
		if errors.As(r.Err, &barred) {
			return results[:i], barred
		}
	}
	return results, nil
}

func logError(err error) error {
	switch {
	case errors.Is(err, changelog.ErrUnknown):
		return fmt.Errorf("%w: the change may or may not have been made: %w", metadata.ErrUnavailable, err)
	case errors.Is(err, changelog.ErrTooLarge):
		return fmt.Errorf("%w: %w", metadata.ErrTooLong, err)
	}
	return fmt.Errorf("%w: nothing was changed: %w", metadata.ErrUnavailable, err)
}

var errLockTimeout = errors.New("timed out waiting for the lock")

// startPatience returns a context that bounds a command's waits. The time starts with the first call of begin.
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

func (s *Store) awaitUnlock(ctx context.Context, h *lockTable, barred error) error {
	select {
	case <-h.changed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: nothing was changed: %w: %w", metadata.ErrUnavailable, barred, context.Cause(ctx))
	}
}

// mayWait reports whether a command may wait for a transaction. A step of another transaction may wait if that
// transaction is older or holds no locks yet, so that no two transactions wait for each other (wait-die; Rosenkrantz,
// Stearns and Lewis, 1978).
func mayWait(c metadata.Command, barred *metadata.HeldError) bool {
	if c.Op != metadata.Transact {
		return true
	}
	step, err := metadata.ParseStep(c.Data)
	return err == nil && (step.First || step.Txn < barred.Txn)
}

// read answers from the tree at one moment. It waits while a transaction is applied or may be decided elsewhere.
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

// Transactions returns the unfinished transactions. changed is closed when they change.
func (s *Store) Transactions() (list []metadata.Txn, changed <-chan struct{}) {
	h := s.state.locks.Load()
	for _, p := range h.txns {
		list = append(list, p.Txn)
	}
	return append(list, h.watches...), h.changed
}
