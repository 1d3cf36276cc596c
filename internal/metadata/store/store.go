// Package store is a directory tree that is kept: what changes it becomes durable in a
// journal first, and is applied in the journal's order. What is read was durable.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"skerry/internal/metadata"
	"skerry/internal/metadata/journal"
	"skerry/internal/metadata/tree"
)

// State is the tree as a journal.Machine.
type State struct {
	tree atomic.Pointer[tree.Tree]
}

// NewState is a tree with nothing but a root.
func NewState() *State {
	s := &State{}
	s.tree.Store(tree.New())
	return s
}

// Tree is the tree as it is; Restore puts another in its place.
func (s *State) Tree() *tree.Tree { return s.tree.Load() }

// Restore is journal.Machine's.
func (s *State) Restore(r io.Reader) error {
	t, err := tree.Load(r)
	if err == nil {
		s.tree.Store(t)
	}
	return err
}

// Snapshot is journal.Machine's.
func (s *State) Snapshot() (journal.Snapshot, error) { return s.Tree().Snapshot() }

// Apply is journal.Machine's: the record is a batch of commands, the result a
// []metadata.Result. A record that is none changes nothing.
func (s *State) Apply(_ uint64, record []byte) any {
	t, results := s.Tree(), make([]metadata.Result, 0, 1)
	if err := metadata.ParseBatch(record, func(c metadata.Command) { results = append(results, t.Do(c)) }); err != nil {
		results = append(results, metadata.Result{Err: err})
	}
	return results
}

// Store serves commands from a state, and changes it through a log.
type Store struct {
	state *State
	log   journal.Log
	// shared is the log where others append to it too, else nil.
	shared journal.Shared
	now    func() time.Time
}

// New is a store on a state that log applies its records to.
func New(s *State, log journal.Log) *Store {
	shared, _ := log.(journal.Shared)
	return &Store{state: s, log: log, shared: shared, now: time.Now}
}

// Tree is the tree as it is.
func (s *Store) Tree() *tree.Tree { return s.state.Tree() }

// maxBatch is about how many bytes of commands become durable as one record.
const maxBatch = journal.MaxRecord / 4

// Do runs commands one after the other. Changes that follow each other without a read
// between them become durable together.
func (s *Store) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results := make([]metadata.Result, 0, len(commands))
	stale := s.current(ctx, commands)
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
			results, n = append(results, s.Tree().Do(commands[0])), 1
		}
		commands = commands[n:]
	}
	return results
}

// current makes sure that reads see what others were answered; its error is theirs.
func (s *Store) current(ctx context.Context, commands []metadata.Command) error {
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
	if len(commands) == 1 && s.shared == nil { // a state that lags may not refuse
		if err := s.Tree().Refuse(commands[0]); err != nil {
			return []metadata.Result{{Err: err}}
		}
	}
	commands = slices.Clone(commands)
	now := s.now().UnixNano()
	for i := range commands {
		if commands[i].Op != metadata.Touch || commands[i].Time == 0 {
			commands[i].Time = now
		}
	}
	answer, err := s.log.Append(ctx, metadata.AppendBatch(nil, commands))
	if results, ok := answer.([]metadata.Result); err == nil && ok && len(results) == len(commands) {
		return results
	}
	return slices.Repeat([]metadata.Result{{Err: unavailable(err)}}, len(commands))
}

// unavailable is an error of the log as a client reads it.
func unavailable(err error) error {
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return fmt.Errorf("%w: it may have been done or not: %w", metadata.ErrUnavailable, err)
	case errors.Is(err, journal.ErrTooLarge):
		return fmt.Errorf("%w: %w", metadata.ErrTooLong, err)
	}
	return fmt.Errorf("%w: nothing was changed: %w", metadata.ErrUnavailable, err)
}
